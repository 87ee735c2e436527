/**
 * Texts of `-c` with redirections and characters that hide, and what the rules below say of them where shell syntax is allowed. Both judges are
 * held to it: src/worker/rules.ts, and native/client/rules.c, which may leave a text to the other one but lets nothing more run.
 */
import type { Decision } from '../../src/worker/worker.ts'

/** In order; the default lets run what no rule names, so that a hidden word shows. */
export const RULES: readonly (readonly [tokens: readonly string[], decision: Decision])[] = [
  [['git', 'push'], 'block'],
  [['python3'], 'block'],
  [['npm'], 'ask'],
]

export const SHELL_TEXTS: readonly (readonly [text: string, decision: Decision])[] = [
  ['git log 2>&1', 'run'],
  ['git log >&2', 'run'],
  ['git log 2>&-', 'run'],
  ['git log 2>&1 | wc -l', 'run'],
  ['git log > out 2>&1;wc out', 'run'],
  ['git log > out', 'run'],
  ['git log >> out < in', 'run'],
  ['echo "a > b" c', 'run'],
  ["echo '2>&1' >out", 'block'],
  ['npm test 2>&1', 'ask'],
  ['git push 2>&1', 'block'],
  // Digits that end a word are not the number of a descriptor.
  ['python3>&1 -V', 'block'],
  ['python3>out -V', 'block'],
  ['git log7>&1', 'ask'],
  ['git "log"7>&1', 'ask'],
  // A word glued behind is the name of a file, or an error.
  ['git>&1log push', 'block'],
  ['git >&1log push', 'block'],
  ['git log 2>&1x', 'ask'],
  ['git log >&file', 'ask'],
  ['git log >& file', 'ask'],
  ['git log &>file', 'ask'],
  ['git &>file push', 'block'],
  ['git &>>file push', 'block'],
  // Redirections may stand between the words, and before them.
  ['git >out push', 'block'],
  ['git 2>/dev/null push', 'block'],
  ['>out git push', 'block'],
  ['git <in push', 'block'],
  ['git <>in push', 'block'],
  ['git >|out push', 'block'],
  ['git 3<&0 push', 'block'],
  ['git 2>&1 push', 'block'],
  ['git <<<x push', 'block'],
  ['git >"a b" push', 'block'],
  ['git >a\\ b push', 'block'],
  ['python3 2>&1', 'block'],
  // Words of the shell's own, behind which a command stands.
  ['! git push', 'ask'],
  ['time git push', 'ask'],
  ['X=1 git push', 'ask'],
  ['eval git push', 'ask'],
  ['exec git push | wc', 'ask'],
  ['if ls; then git push; fi', 'ask'],
  ['ls \ufe0f', 'block'],
  ['ls \u034f', 'block'],
  ['ls \u3164', 'block'],
  ['ls \u1160', 'block'],
  ['ls \u2800', 'block'],
  ['ls\u{e0020}', 'block'],
]
