// Parts of the page that stand in it as text until they are shown.

/** The elements that `script` holds as its text. */
export function thaw(script) {
  const template = document.createElement("template");
  template.innerHTML = script.textContent.replaceAll("<\\/script", "</script");
  return template.content;
}
