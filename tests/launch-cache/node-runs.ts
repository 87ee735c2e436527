/** Runs that start Node although their plan is known, each with its reason. docs/internals/architecture.md has the list. */
import { shellWord } from '../../src/text/shell-word.ts'
import type { User } from '../support/users.ts'

interface NodeRun {
  readonly why: string
  /** Behind `llm-do exec`. */
  readonly words: readonly string[]
  /** Another user has a flag against it, which the client names without Node. */
  readonly of?: User
}

const MIB = 1024 ** 2

export const NODE_RUNS: readonly NodeRun[] = [
  { why: 'The filter of system calls ended a command of root.', words: ['-c', 'kill -SYS $$'], of: 'root' },
  {
    why: 'The network refused a host, and the command failed.',
    words: ['--allow-host', 'example.test', '-c', 'getent hosts other.test; kill -SEGV $$'],
  },
  { why: 'Captured output is longer than its limit.', words: ['--json', '-c', `head -c ${MIB + 1} /dev/zero`] },
  { why: 'A captured error speaks of a refusal.', words: ['--json', '-c', 'echo Operation not permitted >&2; exit 1'] },
  { why: 'A path of a failed command is not shown in the sandbox.', words: ['--', 'ls', '/var/log'] },
  { why: 'The interpreter of a script is missing.', words: ['--', './no-interpreter'] },
  { why: 'The name of a missing program does not print as it is.', words: ['--', 'no\u001bprogram'] },
  { why: 'Changes wait to be applied.', words: ['--cow', '.', '-c', 'echo >made'] },
  { why: 'The command made a protected name.', words: ['--rw', '.', '-c', 'mkdir .idea; sleep 9'] },
]

/** As a page shows them. */
export const nodeRunList = (): string =>
  NODE_RUNS.map(({ why, words }) => `* ${why}\n  \`llm-do exec ${words.map(shown).join(' ')}\``).join('\n')

const shown = (word: string): string => shellWord(word).replaceAll('\u001b', '\\e') // A control character has no place in a page.
