/** The accounts of a machine, as /etc/passwd lists them. Pure. */

export const ACCOUNTS = '/etc/passwd'

/** Where service accounts "live": nothing of a person is there, and no zone can be the root. */
const NO_HOME = /^(\/|\/(bin|sbin|usr|dev|proc|sys|run|nonexistent)(\/.*)?)$/

/** User id -> name; the first of several counts, as for getpwuid(3). */
export function namesOfAccounts(text: string): ReadonlyMap<number, string> {
  const accounts = text.split('\n').flatMap((line): [number, string][] => {
    const [name = '', , uid = ''] = line.split(':')
    return /^\d+$/.test(uid) && name !== '' ? [[Number(uid), name]] : []
  })
  return new Map(accounts.toReversed())
}

/** Home directories of all accounts, in the order of the file (passwd(5)). */
export function homesOfAccounts(text: string): readonly string[] {
  const homes = text.split('\n').map((line) => line.split(':')[5] ?? '')
  return [...new Set(homes)].filter((home) => home.startsWith('/') && !NO_HOME.test(home))
}
