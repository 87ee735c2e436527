/** The learned profile, with the reason for each line. Pure; the text is YAML. */
import { stringify } from 'yaml'
import { shellWord } from '../report/hints.ts'
import type { Denial } from '../report/result.ts'
import { neutralise } from '../report/text.ts'
import { formatDuration, formatSize, sizeWord } from '../text/units.ts'
import type { Grant } from './grants.ts'
import type { Learned } from './learn.ts'

export interface ProfileInputs {
  readonly learned: Learned
  /** The profile that it starts from. */
  readonly base: string
  readonly command: readonly string[]
}

export function profileText({ learned, base, command }: ProfileInputs): string {
  const { runs, changes } = learned
  const lines = [
    ...comments([`learned in ${runs === 1 ? '1 run' : `${runs} runs`} of: ${command.map(shellWord).join(' ')}`]),
    'sandbox:',
    `  extends: ${value(base)}`,
    ...(changes.length === 0 ? [] : workspaceLines(learned)),
    ...grantLines(learned.grants),
    ...resourceLines(learned),
    ...apartLines(learned),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

/** On one line, whatever a path holds. */
const value = (one: unknown): string => stringify(one, { collectionStyle: 'flow', lineWidth: 0 }).trimEnd()
const comments = (texts: readonly string[], indent = ''): readonly string[] =>
  texts.map((text) => `${indent}# ${neutralise(text)}`)

function workspaceLines({ changes }: Learned): readonly string[] {
  const [first] = changes
  const what = changes.length === 1 ? '1 file' : `${changes.length} files`
  return [...comments([`it changes ${what} of its directory, such as ${first?.path}`], '  '), '  workspace: rw']
}

const because = ({ because: { operation, target, count } }: Grant): string =>
  `${operation} ${target}${count > 1 ? ` (${count} times)` : ''}`

/** Lists of the policy that grants add to, and keys that they set. */
function grantLines(grants: readonly Grant[]): readonly string[] {
  const zones = grants.flatMap((grant) => (grant.layer.values.zones ?? []).map((zone) => ({ grant, zone })))
  const hosts = grants.flatMap((grant) => allowedBy(grant).map((host) => ({ grant, host })))
  const ports = grants.flatMap((grant) => localBy(grant).map((port) => ({ grant, port })))
  const samePath = grants.find((grant) => grant.layer.values.samePath === true)
  return [
    ...(samePath === undefined ? [] : [...comments([because(samePath)], '  '), '  samePath: true']),
    ...list(
      '  zones:',
      zones.map(({ grant, zone }) => [because(grant), value(zone)]),
    ),
    ...(hosts.length + ports.length === 0 ? [] : ['  network:']),
    ...list(
      '    allow:',
      hosts.map(({ grant, host }) => [because(grant), value(host)]),
      '      ',
    ),
    ...list(
      '    local:',
      ports.map(({ grant, port }) => [because(grant), value(port)]),
      '      ',
    ),
  ]
}

function list(
  head: string,
  rows: readonly (readonly [why: string, text: string])[],
  indent = '    ',
): readonly string[] {
  return rows.length === 0
    ? []
    : [head, ...rows.flatMap(([why, text]) => [...comments([why], indent), `${indent}- ${text}`])]
}

type Named = { readonly allow?: readonly string[]; readonly local?: readonly (number | string)[] }

const networkOf = ({ layer: { values } }: Grant): Named => (typeof values.network === 'object' ? values.network : {})
const allowedBy = (grant: Grant): readonly string[] => networkOf(grant).allow ?? []
const localBy = (grant: Grant): readonly (number | string)[] => networkOf(grant).local ?? []

const MIB = 1024 ** 2
/** Half as much again, and no less than small programs need from one run to the next. */
const withHeadroom = (peak: number, step: number): number => Math.ceil(Math.max(peak * 1.5, step) / step) * step

function resourceLines({ grants, result: { usage, durationMs } }: Learned): readonly string[] {
  const { peakMemory, peakPids } = usage
  const seconds = withHeadroom((durationMs * 2) / 1000, 10)
  const scratch = grants.flatMap((grant) =>
    Object.entries(grant.layer.values.resources ?? {})
      .filter(([name]) => !['memory', 'pids'].includes(name))
      .flatMap(([name, size]) => [...comments([because(grant)], '    '), `    ${name}: ${value(size)}`]),
  )
  return [
    '  resources:',
    ...comments([`at most ${formatSize(peakMemory)} at once`], '    '),
    `    memory: ${sizeWord(withHeadroom(peakMemory, 64 * MIB))}`,
    ...(peakPids === undefined
      ? []
      : [
          ...comments([`at most ${peakPids} ${peakPids === 1 ? 'process' : 'processes and threads'} at once`], '    '),
          `    pids: ${withHeadroom(peakPids, 16)}`,
        ]),
    ...comments([`it took ${formatDuration(durationMs)}`], '    '),
    `    timeout: ${seconds}s`,
    ...scratch,
  ]
}

function apartLines({ apart, secrets }: Learned): readonly string[] {
  return [
    ...section('It asked for what only you may grant:', apart.map(apartText)),
    ...section('It looked for these, which hold credentials:', secrets),
  ]
}

const apartText = ({ operation, target, fix }: Denial): string =>
  `${operation} ${target}${fix === '' ? '' : `: ${fix}`}`

const section = (head: string, rows: readonly string[]): readonly string[] =>
  rows.length === 0 ? [] : comments([head, ...rows.map((row) => `  ${row}`)])
