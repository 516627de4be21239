// Which kind each block is of: the facts list the blocks by kind.

/** By block, the position of its kind in `kinds`. */
export function kindsByBlock(kinds) {
  const kindOf = [];
  kinds.forEach(({ blocks }, kind) => blocks.forEach((block) => { kindOf[block] = kind; }));
  return kindOf;
}
