// What the theme's scripts expect of the page: a store for what a reader chose, and that choice put on the page before it
// is painted. A classic script, because both have to be there while the page is read.

"use strict";

{
  const site = new URL("../../", document.currentScript.src);
  const key = (name, scope) => `${scope.pathname}.${name}`;

  globalThis.__md_scope = site;
  globalThis.__md_hash = (text) => [...text].reduce((hash, letter) => (hash << 5) - hash + letter.charCodeAt(0), 0);
  globalThis.__md_get = (name, storage = localStorage, scope = site) => JSON.parse(storage.getItem(key(name, scope)));
  globalThis.__md_set = (name, value, storage = localStorage, scope = site) => {
    try {
      storage.setItem(key(name, scope), JSON.stringify(value));
    } catch {
      // A browser that keeps nothing shows the page all the same.
    }
  };

  /** What is too pale to read in the search of Zensical's theme: how much was found, and on which page. */
  const legible = "[role=status], [id$=-path] { color: var(--mute) }";

  // That search dresses itself by a style element in a shadow tree, which is inline and so forbidden; the same rules as a
  // sheet of the tree are not.
  ShadowRoot.prototype.appendChild = function (node) {
    if (!(node instanceof HTMLStyleElement)) return Node.prototype.appendChild.call(this, node);
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(node.textContent + legible);
    this.adoptedStyleSheets.push(sheet);
    return node;
  };

  /** The colours that the reader chose, or none. */
  const chosen = () => {
    try {
      return __md_get("__palette")?.color;
    } catch {
      return undefined;
    }
  };

  const paint = () => {
    const preferred = matchMedia("(prefers-color-scheme: dark)").matches ? { scheme: "slate" } : {};
    for (const [name, value] of Object.entries(chosen() ?? preferred)) {
      document.body.setAttribute(`data-md-color-${name}`, value);
    }
  };

  const arrived = new MutationObserver(() => {
    if (!document.body) return;
    arrived.disconnect();
    paint();
  });
  arrived.observe(document.documentElement, { childList: true });
}
