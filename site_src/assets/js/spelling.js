// How texts are spelled in an address.

/** `text` for an address. Slashes stay, so that it can be read. */
export function encoded(text) {
  return encodeURIComponent(text).replaceAll("%2F", "/");
}

/** What `text` spells; itself where it spells nothing. */
export function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
