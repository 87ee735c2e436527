/**
 * `llm-do ps --net NAME`: the connections of a live run as they happen, until it ends.
 *
 * Edge: the clock.
 */
import { NET_VERDICTS } from '../../contract.ts'
import { programOfPort } from '../../host/program-of-port.ts'
import { jsonLine } from '../../report/json.ts'
import { neutralise } from '../../report/text.ts'
import { liveNetwork } from '../../run/live-network.ts'
import { formatSize } from '../../text/units.ts'
import type { Environment } from '../call.ts'
import { ownRun } from '../run-records.ts'
import { writeStdout } from '../stdio.ts'

interface Happening {
  readonly time: string
  /** As it calls itself; absent where its connection is over, and for questions to the name server. */
  readonly program?: string
  readonly what: 'begin' | 'end'
  readonly host: string
  /** 0: only the name was asked for. */
  readonly port: number
  readonly verdict: string
  readonly rule: string
  readonly bytesIn: number
  readonly bytesOut: number
}

function happeningOf(fields: readonly string[], launcher: number): Happening | undefined {
  const [kind, what, host = '', port, verdict, rule = '', source, bytesIn, bytesOut] = fields
  if (kind !== 'event' || (what !== 'begin' && what !== 'end')) return undefined
  const program = what === 'begin' ? programOfPort(launcher, Number(source)) : undefined
  return {
    time: new Date().toISOString(),
    ...(program === undefined ? {} : { program }),
    what,
    host,
    port: Number(port),
    verdict: NET_VERDICTS[Number(verdict) - 1] ?? 'unknown',
    rule,
    bytesIn: Number(bytesIn),
    bytesOut: Number(bytesOut),
  }
}

function lineOf({ time, program = '-', what, host, port, verdict, rule, bytesIn, bytesOut }: Happening): string {
  const place = port === 0 ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`
  const bytes = what === 'end' ? `over, in ${formatSize(bytesIn)}, out ${formatSize(bytesOut)}` : verdict
  return neutralise([time, program, place, bytes, ...(what === 'begin' && rule !== '' ? [`(${rule})`] : [])].join('  '))
}

export async function followNetwork(env: Environment, word: string, isJson: boolean): Promise<number> {
  const run = ownRun(env, word)
  const network = await liveNetwork(env, run.id)
  network.say('watch')
  for await (const fields of network.lines) {
    const happening = happeningOf(fields, run.pid)
    if (happening !== undefined) await writeStdout(isJson ? jsonLine(happening) : `${lineOf(happening)}\n`)
  }
  return 0
}
