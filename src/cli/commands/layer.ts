/**
 * The verbs on what a copy-on-write run changed: `changes`, `diff`, `apply`, `undo`, `discard`.
 * Edge: whether stdout is a terminal.
 */

import { isatty } from 'node:tty'
import type { Change } from '../../cow/change.ts'
import {
  applyLayer,
  changesOf,
  discardLayer,
  findLayer,
  findPlace,
  type Layer,
  lastLayer,
  namesLayer,
  newestHere,
  undoLayer,
} from '../../cow/layers.ts'
import { neutralise } from '../../report/text.ts'
import { runIdOf } from '../../run/named-sandboxes.ts'
import type { Environment } from '../call.ts'
import { eachWord } from '../each-word.ts'
import { writeStderr, writeStdout } from '../stdio.ts'
import { subcommand } from '../subcommand.ts'

/** Nothing was done, because the host has changed meanwhile. */
const CONFLICT = 3

const layerOf = (id: string | undefined, env: Environment): Layer =>
  id === undefined ? lastLayer(env) : findLayer(runIdOf(env, id), env)

interface Chosen {
  readonly layer: Layer
  readonly paths: readonly string[]
}

/** As many characters of an ID as we print. */
const SHORT = 8

/** Without an ID in front, paths are those of the last run here; of a path that could also be the beginning of an ID, too. */
async function chosen(operands: readonly string[], env: Environment): Promise<Chosen> {
  const [first, ...rest] = operands
  // No ID has a slash: ./FILE, DIRECTORY/, an absolute path.
  if (first?.includes('/')) return { layer: lastLayer(env), paths: operands }
  const id = first === undefined ? undefined : runIdOf(env, first)
  const isRun = id === undefined || (id.length >= SHORT && namesLayer(id, env))
  const changed = isRun ? undefined : await changedHere(id, env)
  return changed === undefined ? { layer: layerOf(first, env), paths: rest } : { layer: changed, paths: operands }
}

async function changedHere(path: string, env: Environment): Promise<Layer | undefined> {
  const layer = newestHere(env)
  const isAt = (change: Change) => change.path === path || change.path.startsWith(`${path}/`)
  return layer !== undefined && (await changesOf(layer)).some(isAt) ? layer : undefined
}

const LETTER: Readonly<Record<Change['kind'], string>> = {
  added: 'A',
  modified: 'M',
  deleted: 'D',
  renamed: 'R',
  mode: 'm',
  symlink: 'L',
  type: 'T',
}

/** `644 -> 755`; with what is applied of it where that is less. */
function modesOf({ mode, modeBefore, modeApplied }: Change): string {
  if (modeBefore === undefined && modeApplied === undefined) return ''
  const shown = modeBefore === undefined ? ` ${mode}` : ` ${modeBefore} -> ${mode}`
  return modeApplied === undefined ? shown : `${shown}, applied as ${modeApplied} without --modes`
}

function lineOf(change: Change): string {
  const { kind, path, from, target, type } = change
  const notes = [
    change.conflict ? 'conflict' : '',
    change.protected ? 'protected' : '',
    change.outside ? 'leads out' : '',
    change.refused ? 'is never applied' : '',
  ].filter((note) => note !== '')
  const modes = modesOf(change)
  const name = `${from === undefined ? '' : `${from} -> `}${path}${type === 'directory' ? '/' : ''}${target === undefined ? '' : ` -> ${target}`}${modes}`
  return `${LETTER[kind]} ${neutralise(name)}${notes.length > 0 ? ` (${notes.join(', ')})` : ''}`
}

export const changes = subcommand('changes', async ({ operands: [id], flags }, { env }) => {
  const layer = layerOf(id, env)
  const found = await changesOf(layer)
  if (flags['json'] === true) await writeStdout(`${JSON.stringify({ id: layer.id, changes: found })}\n`)
  else await writeStdout(found.map((change) => `${lineOf(change)}\n`).join(''))
  return 0
})

/** Patches are for programs, byte by byte; a terminal gets colours (but with NO_COLOR), and no control character of the command's. */
async function printPatch(patch: Buffer, env: Environment): Promise<void> {
  if (!isatty(1)) return await writeStdout(patch)
  const { page } = await import('../pager.ts')
  const painted = (env['NO_COLOR'] ?? '') === '' ? coloured : harmless
  await page(patch.toString('utf8').split('\n').map(painted).join('\n'), env)
}

const COLOURS: readonly (readonly [string, number])[] = [
  ['diff --git', 1],
  ['index ', 1],
  ['+++', 1],
  ['---', 1],
  ['@@', 36],
  ['+', 32],
  ['-', 31],
]

const harmless = (line: string): string => line.split('\t').map(neutralise).join('\t')

function coloured(line: string): string {
  const code = COLOURS.find(([start]) => line.startsWith(start))?.[1]
  const shown = harmless(line)
  return code === undefined ? shown : `\u001b[${code}m${shown}\u001b[m`
}

export const diff = subcommand('diff', async ({ operands, flags }, { env }) => {
  const { diffLayer, unshownText } = await import('../../run/diff.ts')
  const { layer, paths } = await chosen(operands, env)
  const { patch, inGit, unshown } = await diffLayer(layer, { paths, stat: flags['stat'] === true, env })
  if (flags['json'] === true) {
    const found = await changesOf(layer)
    await writeStdout(
      `${JSON.stringify({ id: layer.id, changes: found, patch: patch.toString('utf8'), inGit, unshown })}\n`,
    )
    return 0
  }
  await printPatch(patch, env)
  const short = layer.id.slice(0, 8)
  if (inGit.length > 0)
    await writeStderr([
      `llm-do: ${inGit.length} changes inside .git are not in the patch; llm-do changes ${short} lists them`,
    ])
  const unseen = unshownText(unshown)
  if (unseen !== '')
    await writeStderr([`llm-do: the patch does not show ${unseen}; llm-do changes ${short} lists them`])
  return 0
})

export const apply = subcommand('apply', async ({ operands, flags }, { env }) => {
  const { layer, paths } = await chosen(operands, env)
  const done = await applyLayer(layer, { paths, force: flags['force'] === true, modes: flags['modes'] === true })
  if (flags['json'] === true) await writeStdout(`${JSON.stringify({ id: layer.id, ...done })}\n`)
  else
    await writeStderr([
      ...done.conflicts.map(
        (path) => `llm-do: conflict: ${neutralise(path)} was changed on the host since the run began`,
      ),
      ...done.protected.map((path) => `llm-do: left out: ${neutralise(path)} is protected; name it to apply it`),
      ...(done.narrowed > 0
        ? [
            `llm-do: modes of ${done.narrowed} would let others do more than before, and were narrowed; --modes applies them`,
          ]
        : []),
      ...done.special.map((path) => `llm-do: left out: ${neutralise(path)} is a device, FIFO or socket`),
      done.conflicts.length > 0
        ? `llm-do: nothing was applied; --force applies it all the same`
        : `llm-do: ${done.applied} applied; llm-do undo ${layer.id.slice(0, 8)} takes it back`,
    ])
  return done.conflicts.length > 0 ? CONFLICT : 0
})

export const undo = subcommand('undo', async ({ operands: [id], flags }, { env }) => {
  const layer = id === undefined ? lastLayer(env, { isApplied: true }) : findLayer(runIdOf(env, id), env)
  const changed = await undoLayer(layer, flags['force'] === true)
  await writeStderr([
    changed === undefined
      ? `llm-do: the apply of ${layer.id.slice(0, 8)} was taken back; its changes wait again`
      : `llm-do: nothing was undone: ${neutralise(changed)} has changed since the apply`,
  ])
  return changed === undefined ? 0 : CONFLICT
})

export const discard = subcommand('discard', async ({ operands, flags }, { env }) => {
  const force = flags['force'] === true
  return await eachWord(operands.length === 0 ? [lastLayer(env).id] : operands, async (word) => {
    // A damaged layer can be thrown away, too.
    const id = runIdOf(env, word)
    const place = force ? findPlace(id, env) : findLayer(id, env)
    await discardLayer(place, force)
    return `the changes of ${place.id.slice(0, 8)} were discarded`
  })
})
