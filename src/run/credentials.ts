/**
 * The secrets of `network.credentials`: looked up when the sandbox starts, given to the terminator, and kept nowhere.
 * Edge: the caller's environment, files.
 */
import { fstatSync, realpathSync } from 'node:fs'
import { SandboxError } from '../error.ts'
import {
  type HeaderCredential,
  namedHosts,
  parseHostPort,
  parseRequestRule,
  printHostPort,
  type TerminatedHost,
} from '../network/termination.ts'
import { readUpTo, withOpenFile } from '../os/look.ts'
import type { Plan } from '../plan/plan.ts'
import { isWithin } from '../plan/well-known-paths.ts'
import type { Environment } from './caller.ts'

/** The terminator's work for a plan, secrets included; undefined where TLS of no host ends here. @throws SandboxError POLICY_INVALID */
export function terminatedHostsOf(plan: Plan, env: Environment): readonly TerminatedHost[] | undefined {
  if (plan.trust === undefined) return undefined
  const { credentials = [], requests = [] } = plan.network
  const rules = requests.flatMap((text) => parseRequestRule(text) ?? [])
  return namedHosts(plan.network).map((place) => {
    const isHere = ({ host, port }: typeof place): boolean => host === place.host && port === place.port
    const added = credentials.filter(({ host }) => isHere(parseHostPort(host) ?? { host: '', port: 0 }))
    return {
      ...place,
      headers: added.map((one) => ({ name: one.header, value: headerValueOf(one, plan, env) })),
      requests: rules.filter(isHere),
    }
  })
}

function headerValueOf(credential: HeaderCredential, plan: Plan, env: Environment): string {
  const { from, format = '{}' } = credential
  const place = from.slice(from.indexOf(':') + 1)
  const secret = from.startsWith('env:') ? ofVariable(credential, place, plan, env) : ofFile(credential, place, plan)
  // Header values are bytes; what is beyond ASCII would mean different things to different servers.
  if (!/^[\x20-\x7e]+$/.test(secret))
    throw refused(credential, 'expected one line of printable ASCII', secret === '' ? 'nothing' : 'other characters')
  return format.replace('{}', () => secret)
}

function ofVariable(credential: HeaderCredential, name: string, plan: Plan, env: Environment): string {
  if (plan.env.some((variable) => variable.name === name && variable.from === 'inherit'))
    throw refused(credential, `expected ${name} to stay outside`, `env.inherit, which gives it to the command`)
  const secret = env[name]
  if (secret === undefined) throw refused(credential, `expected the variable ${name}`, 'none of that name')
  return secret
}

const MOST_BYTES = 64 * 1024

function placeShowing(path: string, { zones, system }: Plan): string | undefined {
  const zone = zones.find(({ source }) => isWithin(path, source))
  if (zone !== undefined) return `${zone.target} (${zone.from})`
  return system.find((entry) => entry.op === 'bind' && isWithin(path, entry.source))?.target
}

/** One newline at the end is an editor's. */
function ofFile(credential: HeaderCredential, path: string, plan: Plan): string {
  try {
    const real = realpathSync.native(path)
    const place = placeShowing(real, plan)
    if (place !== undefined)
      throw refused(credential, `expected ${path} to stay outside`, `a file that ${place} shows to the command`)
    return readSmall(credential, real).replace(/\r?\n$/, '')
  } catch (cause) {
    if (cause instanceof SandboxError) throw cause
    const { code = 'unknown' } = cause as NodeJS.ErrnoException
    throw refused(credential, `expected the file ${path}`, `one that cannot be read (${code})`)
  }
}

function readSmall(credential: HeaderCredential, path: string): string {
  return withOpenFile(path, (fd) => {
    if (!fstatSync(fd).isFile()) throw refused(credential, `expected the file ${path}`, 'something else')
    const bytes = readUpTo(fd, MOST_BYTES + 1)
    if (bytes.length > MOST_BYTES) throw refused(credential, `expected at most ${MOST_BYTES} bytes in ${path}`, 'more')
    return bytes.toString('utf8')
  })
}

/** Says where the secret was looked for, and nothing of it. */
function refused({ host, header, from }: HeaderCredential, expected: string, got: string): SandboxError {
  const place = printHostPort(parseHostPort(host) ?? { host, port: 0 })
  return new SandboxError(
    'POLICY_INVALID',
    `network.credentials: ${header} for ${place} (${from}): ${expected}, got ${got}.`,
    {
      hint: from.startsWith('env:')
        ? `export ${from.slice(4)}=...`
        : 'put the secret alone on one line of a file outside of all zones',
    },
  )
}
