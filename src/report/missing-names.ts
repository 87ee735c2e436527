/** Names that a failed command says it did not find: candidates for what the host has and the sandbox does not show. Pure. */
import { wordsOf } from './stderr-denials.ts'

export interface MissingNames {
  /** Relative, or absolute inside. */
  readonly paths: readonly string[]
  /** Modules of Node, by the name of their package. */
  readonly modules: readonly string[]
}

/** The same words as in native/client/result.c. */
const MISSING = /no such file|ENOENT|not found|cannot find|can't open|cannot open|no module named/i

/** `dep/sub`, `@scope/dep/sub` -> the package. */
const MODULE = /cannot find (?:module|package) ['"]((?:@[\w.-]+\/)?[\w][\w.-]*)[/'"]/gi

/** A command that tells more is cut: the first names are mostly the cause. */
const MOST = 64

/** @param text the end of stderr */
export function missingNames(text: string, words: readonly string[] = []): MissingNames {
  const lines = text.split('\n').filter((line) => MISSING.test(line))
  const said = lines.flatMap(wordsOf)
  return {
    paths: [...new Set([...words, ...said])].slice(0, MOST),
    modules: [...new Set([...text.matchAll(MODULE)].map(([, name = '']) => name))].slice(0, MOST),
  }
}
