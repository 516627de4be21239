// What a reader chose, remembered by the browser for every page; one that keeps nothing forgets it with the page.

const PREFIX = "encyclopedia.";

/** What was remembered as `name`, or `null`. */
export function recall(name) {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + name));
  } catch {
    return null;
  }
}

/** Remembers `choice` as `name`, or with `null` forgets it. */
export function remember(name, choice) {
  try {
    if (choice === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, JSON.stringify(choice));
  } catch {
    // The choice holds on this page all the same.
  }
}
