// New elements: made by name, thawed from what the page holds as text, or what a text consists of.

/** An element with `attributes` and `children`, elements or texts. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Text in which backticks set code. */
export function rich(text) {
  return text.split("`").map((piece, index) => (index % 2 ? make("code", {}, ...dotted(piece)) : piece));
}

/** A path that may break after its dots, with its last name set apart where `apart`. */
export function dotted(path, apart = false) {
  const names = path.split(".");
  return names.flatMap((name, index) => {
    const last = index === names.length - 1;
    if (last) return apart ? make("em", {}, name) : name;
    return [`${name}.`, make("wbr")];
  });
}

/** The elements that `script` holds as its text until they are shown. */
export function thaw(script) {
  const template = document.createElement("template");
  template.innerHTML = script.textContent.replaceAll("<\\/script", "</script");
  return template.content;
}
