// The chart library, asked for when the first chart comes into view and not before.

const ADDRESS = new URL("../../vendor/plotly.min.js", import.meta.url).href;
/** What the library calls its sheet for maps, after its content. */
const MAPS_SHEET = "9f215cf04c5486422605d13261cb87401f4e7763b6296af81e98efbc0130da53";

let asked = null;

/** The library, once it has arrived. */
export function plotly() {
  asked ??= new Promise((resolve, reject) => {
    lendSheet();
    const script = document.createElement("script");
    script.src = ADDRESS;
    script.addEventListener("load", () => resolve(window.Plotly));
    script.addEventListener("error", () => {
      asked = null;
      script.remove();
      reject(new Error(`the chart library could not be loaded from ${ADDRESS}`));
    });
    document.head.append(script);
  });
  return asked;
}

/**
 * Gives the library a sheet of the page for its rules: one that it makes itself is inline, which a policy may forbid. An
 * element takes the place of the inline sheet for maps, which it makes where none is.
 */
function lendSheet() {
  const sheet = document.querySelector('link[rel="stylesheet"][href$="/family.css"]');
  if (sheet) sheet.id = "plotly.js-style-global";
  const maps = document.createElement("template");
  maps.id = MAPS_SHEET;
  document.head.append(maps);
}
