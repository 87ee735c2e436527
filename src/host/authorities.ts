/**
 * Certificate authorities of a company: files that the caller's variables name. The command gets the certificates in them, and no other byte: a
 * variable that names something else shows nothing of it.
 * Edge: the file system.
 */
import { fstatSync, readFileSync, realpathSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { realOf, withOpenFile } from '../os/look.ts'
import { namesOnTheWay } from '../os/names-on-the-way.ts'

/** They are variables of a plan's key (native/contract.yaml). */
export const AUTHORITY_VARIABLES = [
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'REQUESTS_CA_BUNDLE',
  'GIT_SSL_CAINFO',
  'CURL_CA_BUNDLE',
] as const

export interface Authorities {
  /** Variable -> file inside. */
  readonly variables: Readonly<Record<string, string>>
  readonly files: readonly AuthorityFile[]
  readonly warnings: readonly string[]
}

export interface AuthorityFile {
  /** On this host, canonical. */
  readonly file: string
  /** The names on the way to it; see `namesOnTheWay`. */
  readonly names: readonly string[]
  /** Inside. */
  readonly target: string
  readonly content: string
}

export interface AuthorityQuestion {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Files that every sandbox shows. */
  readonly shown: readonly string[]
  /** Directories in which a command may write: what one leaves there decides about no later one. */
  readonly notBelow: readonly string[]
}

const MOST_BYTES = 1 << 20
const CERTIFICATE =
  /^-----BEGIN ((?:TRUSTED |X509 )?CERTIFICATE)-----\r?\n(?:[A-Za-z0-9+/= \t]*\r?\n)+-----END \1-----$/gm

const read = (file: string): string | undefined =>
  withOpenFile(file, (fd) => {
    const found = fstatSync(fd)
    return found.isFile() && found.size <= MOST_BYTES ? readFileSync(fd, 'latin1') : undefined
  })

const isWithin = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory === '/' ? '/' : `${directory}/`)

/** @returns why there is none */
function certificatesIn(text: string, notBelow: readonly string[]): Omit<AuthorityFile, 'target'> | string {
  if (!isAbsolute(text)) return 'expected an absolute path'
  try {
    const names = namesOnTheWay(text)
    const places = notBelow.flatMap((place) => [place, realOf(place) ?? place])
    if (names.some((name) => places.some((place) => isWithin(name, place)))) return 'it lies where a command may write'
    const file = realpathSync(text)
    const content = (read(file)?.match(CERTIFICATE) ?? []).join('\n')
    return content === ''
      ? 'expected a file with certificates (PEM) of at most 1 MiB'
      : { file, names, content: `${content}\n` }
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'it cannot be read'
  }
}

/** Certificates that two variables name are there once. */
export function readAuthorities({ env, shown, notBelow }: AuthorityQuestion): Authorities | undefined {
  const named = AUTHORITY_VARIABLES.flatMap((name) => (env[name] ? [[name, env[name] ?? ''] as const] : []))
  if (named.length === 0) return undefined
  const files: AuthorityFile[] = []
  const warnings: string[] = []
  const variables = named.flatMap(([name, text]) => {
    if (shown.includes(text)) return [[name, text]]
    const found = certificatesIn(text, notBelow)
    if (typeof found === 'string') {
      warnings.push(`${name}: its certificates are not passed on: ${found}`)
      return []
    }
    const same = files.find(({ file }) => file === found.file)
    const target = same?.target ?? `/etc/.llm-do/authorities-${files.length + 1}.pem`
    if (same === undefined) files.push({ ...found, target })
    return [[name, target]]
  })
  return { variables: Object.fromEntries(variables), files, warnings }
}
