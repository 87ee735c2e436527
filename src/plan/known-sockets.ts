/** Sockets behind which somebody does more than answer: to show one is to give the command what its server can do. Pure. */
import { posix } from 'node:path'
import type { PlannedZone } from './plan.ts'

interface KnownSocket {
  readonly is: RegExp
  readonly gives: string
}

const KNOWN: readonly KnownSocket[] = [
  {
    is: /\/(?:docker|podman|containerd|crio|buildkitd|dockershim)[^/]*\.sock$/,
    gives: "a container engine: a command that reaches it can run anything on this host, as root where it is root's",
  },
  {
    is: /\/(?:ssh-[^/]*\/agent\.\d+|keyring\/ssh|[^/]*ssh-agent[^/]*)$/,
    gives: 'an agent of ssh: the command can log in with every key that it holds',
  },
  {
    is: /\/S\.gpg-agent(?:\.[a-z]+)?$/,
    gives: 'an agent of gpg: the command can sign and decrypt with every key that it holds',
  },
  {
    is: /\/(?:bus|system_bus_socket|dbus-[^/]*)$/,
    gives: 'D-Bus: the command can start programs and services outside by it',
  },
  { is: /\/systemd\/private$/, gives: 'systemd: the command can start programs and services outside by it' },
  {
    is: /\/(?:\.X11-unix\/X\d+|wayland-\d+)$/,
    gives: 'a display: the command can read the keyboard and the screen, or type',
  },
]

export const isDangerousSocket = (path: string): boolean => KNOWN.some(({ is }) => is.test(path))

/** One line for each socket that is known to give more than a service. `sshAgent`: the caller's, wherever it is. */
export function warnOfKnownSockets(zones: readonly PlannedZone[], sshAgent: string | undefined): readonly string[] {
  const agent = { is: /(?:)/, gives: KNOWN[1]?.gives ?? '' }
  return zones
    .filter(({ kind, from }) => kind === 'socket' && from !== 'ssh agent')
    .flatMap(({ source }) => {
      const known = source === sshAgent ? agent : KNOWN.find(({ is }) => is.test(source))
      return known === undefined ? [] : [`${posix.normalize(source)} is ${known.gives}`]
    })
}
