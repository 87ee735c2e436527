/** The accounts of a machine, as /etc/passwd lists them. Pure. */

export const ACCOUNTS = '/etc/passwd'

/** Where service accounts "live": nothing of a person is there, and no zone can be the root. */
const NO_HOME = /^(\/|\/(bin|sbin|usr|dev|proc|sys|run|nonexistent)(\/.*)?)$/

/** Home directories of all accounts, in the order of the file (passwd(5)). */
export function homesOfAccounts(text: string): readonly string[] {
  const homes = text.split('\n').map((line) => line.split(':')[5] ?? '')
  return [...new Set(homes)].filter((home) => home.startsWith('/') && !NO_HOME.test(home))
}
