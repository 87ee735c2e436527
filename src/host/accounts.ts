/** The accounts of a machine, as /etc/passwd lists them. Pure. */

export const ACCOUNTS = '/etc/passwd'

export const NAME_SERVICES = '/etc/nsswitch.conf'

/**
 * The home of a user's account for as long as the two files stay as they are: undefined where the account is not in the first, or another
 * service may be asked before it. @param services text of nsswitch.conf(5); '' = there is none, and the file is asked
 */
export function lastingHome(accounts: string, services: string, uid: number): string | undefined {
  const asked = /^[ \t]*passwd:[ \t]*(\S+)/m.exec(services)?.[1] ?? 'files'
  const line = accounts.split('\n').find((text) => text.split(':')[2] === String(uid))
  return asked === 'files' ? line?.split(':')[5] : undefined
}

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
