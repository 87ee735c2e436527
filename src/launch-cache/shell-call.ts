/**
 * Words as a shell takes them: `-c SCRIPT`, `-lc SCRIPT NAME ARG...`, `-e -o pipefail -c SCRIPT`, `-x FILE`. Programs that start
 * `$SHELL -lc SCRIPT` can be given ours for a shell. What has a `c` is read in the same way by native/client/call.c. Pure.
 */
import { BASH, BASH_LETTERS, BASH_OPTIONS, SHELL, SHELL_LETTERS } from '../contract.ts'

export interface ShellCall {
  /** The program that runs the script. */
  readonly shell: string
  /** Where the options of the shell begin. */
  readonly from: number
  /** Of the script or its file; there may be no such word. */
  readonly scriptAt: number
  /** The word that says that a script follows; a file needs none. */
  readonly flag?: string
}

const CLUSTER = new RegExp(`^-[${SHELL_LETTERS}]+$`)
const isLongOption = (word: string): boolean => BASH_OPTIONS.some((option) => option === word)
/** Options of a shell with a file; without a `c`, the other letters are options of docker or of other programs. */
const FOR_FILE = /^-\w*[elx]/
/** The value of a docker option with the same letter has `=` or `:`, or is a plain word. */
const FILE = /^[^-=:][^=:]*[/.][^=:]*$|^\/[^=:]+$/

/**
 * The shell's part of a command line, from `from` on.
 * @param hasBash else sh runs everything
 * @returns undefined where no shell is meant: no `c` among the letters, and no file behind them
 */
export function shellCallAt(words: readonly string[], from: number, hasBash: boolean): ShellCall | undefined {
  let at = from
  let flag: string | undefined
  let needsBash = false
  for (let word = words[at] ?? ''; CLUSTER.test(word) || isLongOption(word); word = words[at] ?? '') {
    const isLong = isLongOption(word)
    needsBash ||= isLong || [...word].some((letter) => BASH_LETTERS.includes(letter))
    if (!isLong && word.includes('c')) flag ??= word
    at += !isLong && word.includes('o') ? 2 : 1
  }
  const shell = needsBash && hasBash ? BASH : SHELL
  if (flag !== undefined) return { shell, from, scriptAt: words[at] === '--' ? at + 1 : at, flag }
  const isForFile = words.slice(from, at).some((word) => isLongOption(word) || FOR_FILE.test(word))
  return isForFile && FILE.test(words[at] ?? '') ? { shell, from, scriptAt: at } : undefined
}
