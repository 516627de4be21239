// The chart library, which stands in the page.

/** The library. */
export const plotly = async () => window.Plotly;
