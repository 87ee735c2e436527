/** Command text -> words, as a POSIX shell divides it when it expands nothing; and what in it a reader cannot see. Pure. */
import { INVISIBLE } from '../text/invisible.ts'

export type Division =
  | { readonly ok: true; readonly tokens: readonly string[] }
  /** Completes "expected ..., got ...". */
  | { readonly ok: false; readonly expected: string; readonly got: string }

/** Divides like Python's `shlex.split`: quotes and backslashes count, `#` begins no comment. */
export function divide(text: string): Division {
  const tokens: string[] = []
  let token: string | undefined
  let quote: '"' | "'" | undefined
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] ?? ''
    if (quote === undefined && /\s/.test(character)) {
      if (token !== undefined) tokens.push(token)
      token = undefined
    } else if (character === quote) quote = undefined
    else if (quote === undefined && (character === '"' || character === "'")) {
      quote = character
      token ??= ''
    } else if (character === '\\' && escapes(quote, text[at + 1])) {
      at += 1
      if (at === text.length) return { ok: false, expected: 'a character after the last backslash', got: 'the end' }
      token = (token ?? '') + (text[at] ?? '')
    } else token = (token ?? '') + character
  }
  if (quote !== undefined) return { ok: false, expected: `a closing ${quote}`, got: 'the end' }
  return { ok: true, tokens: token === undefined ? tokens : [...tokens, token] }
}

/** Inside double quotes a backslash only takes the meaning of a quote and of itself; inside single quotes of nothing. */
function escapes(quote: '"' | "'" | undefined, next: string | undefined): boolean {
  return quote === undefined || (quote === '"' && (next === '"' || next === '\\'))
}

/** Also private use and unassigned code points. */
const UNSEEN = new RegExp(`[${INVISIBLE}\\p{C}]`, 'u')
const SHELL_SIGNS = /[|&;<>()$`\\"'*?[\]{}#~=%!\s]/
/** Look like shell signs, but Unicode does not say so: vertical bars, backticks, angle quotes, slashes, asterisks. */
const LOOK_ALIKES = /[\u01c0\u2223\u23d0\u2758\u2759\u02cb\u2035\u2039\u203a\u2215\u2044\u29f8\u2217\u204e\u204f]/

/**
 * Finds a character that is displayed as something else, or not at all: the first one as `U+200B`, or undefined.
 * @param seen characters that are let through although they would count
 */
export function hiddenCharacter(text: string, seen = ''): string | undefined {
  const found = [...text].find((character) => !seen.includes(character) && isHidden(character))
  return found === undefined ? undefined : codePointName(found)
}

function isHidden(character: string): boolean {
  if (character >= ' ' && character <= '~') return false
  // A full-width semicolon is a plain letter to the shell and a separator to the reader: its compatibility form tells.
  return UNSEEN.test(character) || LOOK_ALIKES.test(character) || SHELL_SIGNS.test(character.normalize('NFKC'))
}

/** `U+037E`. */
export function codePointName(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}
