// Ours next to its peers: the protection of each, found by trying, and its time, in one row, so that leaving walls out does not look fast.
//   node bench/main.mjs --rows peers [--runs N] [--json]

import { OUR_BOUNDS, OURS, openPeers } from './peers.mjs'
import { withPool } from './pool.mjs'
import { COLUMNS, cellOf, findProtections } from './protections.mjs'
import { makeStage } from './stage.mjs'
import { median } from './statistics.mjs'
import { timeByTurns } from './stopwatch.mjs'

const READY = 2
/** A peer that takes seconds a run must not make the bench take hours. */
const ROUNDS_MAX = 20

/** @returns the peers that are compared, with their protections and times, and why others are not */
export async function comparePeers({ runs, progress }) {
  const stage = makeStage()
  const { here, missing } = await openPeers(stage)
  try {
    const ours = Object.entries(OURS).map(([name, make]) => ({ name: `llm-do exec, ${name}`, ...make(stage) }))
    for (const { argv } of ours) stage.warm(argv(['true']))
    return await withPool(
      stage,
      READY,
      (pool) => compare({ stage, pool, runs, progress, peers: [...ours, ...here], missing }),
      OUR_BOUNDS,
    )
  } finally {
    for (const { close } of here) await close?.()
    stage.remove()
  }
}

async function compare({ stage, pool, runs, progress, peers, missing }) {
  const runners = Object.fromEntries(peers.map((peer) => [peer.name, { ...peer, before: pool.fill }]))
  const { found, failed } = await findProtections(stage, runners, (name) => progress(`peers: what ${name} protects`))
  const compared = peers.filter(({ name }) => found[name] !== undefined)
  const times = await timeByTurns({
    stage,
    commands: Object.fromEntries(compared.map((peer) => [peer.name, wordsOf(peer)])),
    rounds: Math.min(runs, ROUNDS_MAX),
    before: pool.fill,
    onRound: (round) => progress(`peers: round ${round}`),
  })
  const base = median(times['naive bwrap'])
  const rows = compared.map(({ name }) => ({ name, ratio: median(times[name]) / base, found: found[name] }))
  const unknown = Object.entries(failed).map(([name, reason]) => ({ name, missing: reason }))
  return { rows: rows.sort((one, other) => one.ratio - other.ratio), times, missing: [...missing, ...unknown] }
}

/** The stopwatch has one environment for all. */
function wordsOf({ argv, env }) {
  const variables = Object.entries(env ?? {}).map(([name, value]) => `${name}=${value}`)
  return [...(variables.length === 0 ? [] : ['env', ...variables]), ...argv(['true'])]
}

/** As Markdown, for docs/internals/performance.md. */
export function comparisonTable({ rows, times }) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  const head = ['', 'ms', '/ naive bwrap', ...Object.keys(COLUMNS)]
  const body = rows.map(({ name, ratio, found }) => [
    name,
    (median(times[name]) / 1e6).toFixed(1),
    ratio.toFixed(2),
    ...Object.values(COLUMNS).map((attempts) => cellOf(found, attempts)),
  ])
  return [line(head), line(head.map(() => '---')), ...body.map(line)].join('\n')
}
