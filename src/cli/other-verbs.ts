/**
 * Suggests a replacement for a verb that does not exist: one of a container engine or of git, or a program of this machine, which is not
 * started.
 *
 * Edge: file system (access).
 */
import { delimiter, isAbsolute, join } from 'node:path'
import { may } from '../os/look.ts'
import { shellWord } from '../text/shell-word.ts'

const OF_OTHERS: Readonly<Record<string, string>> = {
  shell: 'llm-do exec --tty -- bash',
  start: 'llm-do run -- COMMAND',
  attach: 'llm-do logs -f, or llm-do exec --in NAME --tty -- sh',
  inspect: 'llm-do ps --json, or llm-do exec --plan -- COMMAND',
  list: 'llm-do ps',
  status: 'llm-do ps',
  stats: 'llm-do ps',
  wait: 'llm-do logs -f',
  pull: 'llm-do images --pull',
  clean: 'llm-do prune',
  info: 'llm-do doctor',
  check: 'llm-do doctor, or llm-do workers check',
  show: 'llm-do changes, or llm-do profiles show NAME',
  commit: 'llm-do apply',
  revert: 'llm-do undo',
  export: 'llm-do diff',
}

/** @param words the verb and what follows it */
export function otherVerb(words: readonly string[], path = ''): string | undefined {
  const [verb = ''] = words
  if (Object.hasOwn(OF_OTHERS, verb)) return OF_OTHERS[verb]
  const entries = path.split(delimiter).filter((entry) => isAbsolute(entry))
  const isProgram = verb.includes('/') ? may(verb) : entries.some((entry) => may(join(entry, verb)))
  return isProgram ? `llm-do exec -- ${words.map(shellWord).join(' ')}` : undefined
}
