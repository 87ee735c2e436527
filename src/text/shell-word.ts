/** Words for a POSIX shell: a hint is a command, so it must survive being pasted. */

const SHELL_SAFE = /^[\w@%+=:,./-]+$/

export function shellWord(word: string): string {
  return SHELL_SAFE.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
