// Copying: a button with `data-copy` copies that text; where the text is empty, the code of its `.code-block`.
// One listener on the document, so parts of the page can be exchanged without binding anything again.

const SHOWN_FOR = 1600;

/** The text that `button` copies. */
function textOf(button) {
  return button.dataset.copy || button.closest(".code-block")?.querySelector("pre")?.textContent || "";
}

/** Copies the text of `button` and says so, in the button and to screen readers. */
export async function copy(button) {
  const text = textOf(button);
  const copied = await write(text);
  announce(copied ? `Copied ${text.includes("\n") ? "the code" : text}` : "Copying was refused by the browser");
  if (!copied) return;
  button.dataset.copied = "";
  setTimeout(() => delete button.dataset.copied, SHOWN_FOR);
}

async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return writeBySelection(text);
  }
}

// Pages opened from a file or over plain HTTP have no clipboard object, or refuse it.
function writeBySelection(text) {
  const focused = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus?.({ preventScroll: true });
  return copied;
}

function announce(message) {
  let region = document.querySelector("[data-copy-status]");
  if (!region) {
    region = document.createElement("div");
    region.className = "visually-hidden";
    region.dataset.copyStatus = "";
    region.setAttribute("role", "status");
    document.body.append(region);
  }
  // A region that is emptied first is read again when the same text is copied twice.
  region.textContent = "";
  requestAnimationFrame(() => { region.textContent = message; });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("button[data-copy]");
  if (button) copy(button);
});

document.documentElement.dataset.copyReady = "";
