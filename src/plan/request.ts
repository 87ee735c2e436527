import type { Authorities } from '../host/authorities.ts'
import type { LinkedWorktree } from '../host/linked-worktree.ts'
import type { PrivatePlaces } from '../host/private-directory.ts'
import type { GitIdentity } from '../network/tools/git.ts'
import type { Upstream } from '../network/upstream.ts'

/** The request of one caller, with everything that is not policy: the inputs that make planning reproducible. */
export interface Request {
  /** The command and its arguments, as strings of the host's argv (invalid UTF-8 is carried as lone surrogates nowhere: see cli/argv.ts). */
  readonly command: readonly string[]
  /** Canonical directory the caller stands in. */
  readonly cwd: string
  /** The caller's home directory, canonical; empty when there is none. */
  readonly home: string
  /** Home directories of accounts of this machine, canonical, `home` among them: names of homes are protected in each that a zone shows. */
  readonly homes: readonly string[]
  /** The caller's PATH, split. */
  readonly path: readonly string[]
  /** Names (not values) of the caller's environment variables. */
  readonly environmentNames: readonly string[]
  /** Built-in variables that follow the caller: LANG, TERM, TZ. */
  readonly locale: Readonly<Record<string, string>>
  /** Where SSH_AUTH_SOCK points, when it is set; shown only if the policy says `sshAgent`. */
  readonly sshAgentSocket?: string
  /** Output is captured (JSON, library) rather than passed through. */
  readonly captured: boolean
  /** stdin, stdout and stderr of the caller are terminals. */
  readonly hasTerminal?: true
  /** The parent of the caller is in another pid namespace. */
  readonly isParentUnseen?: true
  /** The caller's name and address in git; only where the policy says `gitIdentity`. */
  readonly gitIdentity?: GitIdentity
  /** The directory by which a home is kept, where that is not the caller's. */
  readonly homeProject?: string
  /** The repository of the checkout that the caller stands in, where that is a linked worktree of git. */
  readonly worktree?: LinkedWorktree
  /** Directories of our own command and its interpreter, existing or not; only where the policy says `selfInside`. */
  readonly ownPrograms?: readonly string[]
  /** Where directories that outlive a run are; absent where none is wanted, or this user has no place for them. */
  readonly privatePlaces?: PrivatePlaces
  /** The directory that git has to see from here, where that is another one. */
  readonly repository?: string
  /** Where a secret that seals the launch cache is, or can be; no zone may hold one. */
  readonly secretDirectories: readonly string[]
  /** The caller's own proxy, for a restricted network. */
  readonly upstream?: Upstream
  /** Certificates that the caller's variables name, for a sandbox with a network. */
  readonly authorities?: Authorities
}
