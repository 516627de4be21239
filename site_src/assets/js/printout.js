// The printout's switch between the folded tree and the exact text, and its two buttons that open and close all.
// Listens on the document, so a printout that is put into the page later works too.

/** Shows `view` (`folded` or `exact`) of the printout that `button` belongs to. */
function show(printout, view) {
  const exact = view === "exact";
  printout.querySelector("[data-printout-folded]").hidden = exact;
  printout.querySelector("[data-printout-exact]").open = exact;
  for (const button of printout.querySelectorAll("[data-printout-view]")) {
    button.setAttribute("aria-pressed", String(button.dataset.printoutView === view));
  }
  for (const button of printout.querySelectorAll("[data-printout-all]")) button.hidden = exact;
}

function setAll(printout, open) {
  const folded = printout.querySelector("[data-printout-folded]");
  for (const details of folded.querySelectorAll("details")) {
    // The root and the list of blocks stay open, or nothing would be left to see.
    details.open = open || details.closest("li").matches("[data-printout-root]");
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-printout-view], [data-printout-all]");
  const printout = button?.closest("[data-printout]");
  if (!printout) return;
  if (button.dataset.printoutView) show(printout, button.dataset.printoutView);
  else setAll(printout, button.dataset.printoutAll === "open");
});

document.documentElement.dataset.printoutReady = "";
