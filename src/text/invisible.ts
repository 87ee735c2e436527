/** Characters that a reader cannot see, for the rules that refuse them and for messages. Pure. */

/**
 * The inside of a character class (flag `u`): controls (escape sequences begin with one), format characters (text direction, zero width), half
 * characters, line breaks; what a renderer shows as nothing (Default_Ignorable_Code_Point: variation selectors, fillers, joiners); the blank
 * Braille pattern, which Unicode counts as a symbol.
 */
export const INVISIBLE = String.raw`\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800`

const UNSEEN = new RegExp(`[${INVISIBLE}]`, 'gu')

/** Text of foreign origin on one line of a terminal: what does not print as itself is spelled `\u{1b}`. */
export const neutralise = (text: string): string =>
  text.replace(UNSEEN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
