// The chart library, asked for when the first chart comes into view and not before.

const ADDRESS = new URL("../../vendor/plotly.min.js", import.meta.url).href;
let asked = null;

/** The library, once it has arrived. */
export function plotly() {
  asked ??= new Promise((resolve, reject) => {
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
