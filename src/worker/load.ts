/**
 * Finds worker and workshop files and reads them, bounded; the real file must be inside the project.
 * Edge: reads files and directories of the project.
 */
import { fstatSync } from 'node:fs'
import { readdir, realpath } from 'node:fs/promises'
import path from 'node:path'
import { SandboxError } from '../error.ts'
import { readUpTo, withOpenFile } from '../os/look.ts'
import { isWithin } from '../plan/well-known-paths.ts'
import { didYouMean } from '../text/did-you-mean.ts'
import { quoteText } from '../text/units.ts'
import { utf8In } from '../text/utf8.ts'
import { LARGEST_FILE } from './frontmatter.ts'
import { invalidWorker } from './problem.ts'
import type { FileText } from './read.ts'
import { hiddenCharacter } from './shell-words.ts'

export interface Finding {
  /** Absolute and canonical: the project, and what relative names are relative to. */
  readonly cwd: string
  /** The directory that `~/` means, absolute; empty without one. */
  readonly home: string
  /** The workers that come with the program, absolute; searched last. Empty for none. */
  readonly shippedDirectory: string
}

export interface FoundFile extends FileText {
  /** Canonical path. */
  readonly real: string
  /** Absolute, as it was named. */
  readonly at: string
  /** Absolute paths that were tried before, where a file would be found first. */
  readonly before: readonly string[]
}

/** Where a name is looked up, best first, relative to the project. */
const PLACES: readonly string[] = [
  'NAME.worker',
  'NAME.agent',
  'NAME.md',
  'workers/NAME.worker',
  'workers/NAME.agent',
  'workers/NAME.md',
  'workers/NAME/worker.worker',
  '.claude/agents/NAME.md',
  '.claude/skills/NAME/SKILL.md',
]
const SHIPPED = 'NAME.worker'
/** Most pages of Markdown at the top of a project are no workers: one is found by its name, but not listed. */
const LISTED = PLACES.filter((place) => place !== 'NAME.md')

const placeOf = (place: string, name: string): string => place.replace('NAME', () => name)

/**
 * Reads the worker of this name or path.
 * @throws SandboxError WORKER_NOT_FOUND, or WORKER_INVALID for anything but a readable file inside the project
 */
export async function findWorker(word: string, finding: Finding): Promise<FoundFile> {
  refuseHidden(word)
  // A path has a slash or the ending of a file; anything else is a name.
  if (word.includes('/') || /\.(worker|agent|md|ya?ml)$/.test(word)) return await readNamed(word, finding)
  const { cwd, shippedDirectory, home } = finding
  const own = PLACES.map((place) => ({
    shown: placeOf(place, word),
    at: path.join(cwd, placeOf(place, word)),
    within: cwd,
  }))
  const at = path.join(shippedDirectory, placeOf(SHIPPED, word))
  const candidates = shippedDirectory === '' ? own : [...own, { shown: at, at, within: shippedDirectory }]
  for (const [index, candidate] of candidates.entries()) {
    const found = await readIfThere({ ...candidate, home })
    if (found !== undefined) return { ...found, before: candidates.slice(0, index).map((tried) => tried.at) }
  }
  throw await notFound(word, finding)
}

/**
 * Reads a workshop by its path.
 * @throws SandboxError as findWorker does
 */
export async function findWorkshop(word: string, finding: Finding): Promise<FoundFile> {
  refuseHidden(word)
  return await readNamed(word, finding)
}

function refuseHidden(word: string): void {
  const hidden = hiddenCharacter(word, ' ')
  if (hidden === undefined && word !== '') return
  const got = word === '' ? 'nothing' : `${quoteText(word)} with ${hidden ?? ''}`
  throw invalidWorker([{ file: '--worker', key: '', expected: 'a name or path that shows as what it is', got }])
}

async function readNamed(word: string, { cwd, home }: Finding): Promise<FoundFile> {
  const at = path.resolve(cwd, word)
  // A file that is named outside the project is meant; a link in the project that leads out of it may have been put there by any user.
  const within = isWithin(at, cwd) ? cwd : await realpath(path.dirname(at)).catch(() => path.dirname(at))
  const found = await readIfThere({ shown: word, at, within, home })
  if (found !== undefined) return found
  throw new SandboxError('WORKER_NOT_FOUND', `no file ${quoteText(at)}.`, { hint: 'llm-do workers list' })
}

interface Wanted {
  /** As messages show it. */
  readonly shown: string
  /** Absolute. */
  readonly at: string
  /** Canonical directory that must hold the real file. */
  readonly within: string
  readonly home: string
}

async function readIfThere({ shown, at, within, home }: Wanted): Promise<FoundFile | undefined> {
  const wrong = (expected: string, got: string) =>
    invalidWorker([{ file: shown, key: '', expected, got }], `ls -ld ${quoteText(at)}`)
  try {
    const real = await realpath(at)
    if (!isWithin(real, within)) throw wrong(`a file inside ${within}`, `a link to ${quoteText(real)}`)
    const text = withOpenFile(real, (fd) => readText(fd, wrong))
    return { file: shown, directory: path.dirname(real), home, text, real, at, before: [] }
  } catch (error) {
    if (error instanceof SandboxError) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw wrong('a file that can be read', REASONS[code ?? ''] ?? `the error ${code ?? 'unknown'}`)
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied (EACCES)',
  ELOOP: 'symbolic links that go in a circle (ELOOP)',
  ENAMETOOLONG: 'a name that is too long (ENAMETOOLONG)',
  ENXIO: 'a socket',
}

function readText(fd: number, wrong: (expected: string, got: string) => SandboxError): string {
  const facts = fstatSync(fd)
  if (!facts.isFile()) throw wrong('a regular file', facts.isDirectory() ? 'a directory' : 'something else')
  const bytes = readUpTo(fd, LARGEST_FILE + 1)
  if (bytes.length > LARGEST_FILE) throw wrong(`at most ${LARGEST_FILE} bytes`, 'more')
  // The byte order mark is the reader's to take away: it knows that a second one is text.
  const text = utf8In(bytes)
  if (text === undefined) throw wrong('UTF-8 text', 'other bytes')
  return text
}

async function notFound(word: string, finding: Finding): Promise<SandboxError> {
  const names = (await listFiles(finding)).map(({ name }) => name)
  const message = `no worker ${quoteText(word)} in ${finding.cwd}.${didYouMean(word, names)}`
  return new SandboxError('WORKER_NOT_FOUND', message, { hint: 'llm-do workers list' })
}

export interface ListedFile {
  /** By which it is looked up. */
  readonly name: string
  /** Relative to the project; absolute for a shipped one. */
  readonly file: string
  readonly from: 'project' | 'shipped'
}

/** Every file that a name can mean, sorted by name; the first of a name is the one that is used. */
export async function listFiles({ cwd, shippedDirectory }: Finding): Promise<readonly ListedFile[]> {
  const own = (await Promise.all(LISTED.map((place) => namesAt(cwd, place)))).flat()
  const shipped = shippedDirectory === '' ? [] : await namesAt(shippedDirectory, SHIPPED)
  const all = [
    ...own.map((found) => ({ ...found, from: 'project' as const })),
    ...shipped
      .filter(({ name }) => !own.some((found) => found.name === name))
      .map(({ name, file }) => ({ name, file: path.join(shippedDirectory, file), from: 'shipped' as const })),
  ]
  return all.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}

async function namesAt(root: string, place: string): Promise<readonly Omit<ListedFile, 'from'>[]> {
  const [directory = '', ending = ''] = place.split('NAME')
  const entries = await namesOf(path.join(root, directory))
  const isPage = (file: string) => /^(README|CHANGELOG|LICENSE|CONTRIBUTING)\.md$/i.test(file)
  const inside = ending.startsWith('/')
    ? await Promise.all(entries.map((entry) => namesOf(path.join(root, directory, entry))))
    : []
  const names = ending.startsWith('/')
    ? entries.filter((_, index) => inside[index]?.includes(ending.slice(1)))
    : entries.flatMap((file) =>
        file.endsWith(ending) && file !== ending && !isPage(file) ? [file.slice(0, -ending.length)] : [],
      )
  return names.map((name) => ({ name, file: placeOf(place, name) }))
}

async function namesOf(directory: string): Promise<readonly string[]> {
  return await readdir(directory).catch(() => []) // no directory, or a closed one: nothing to offer
}

/** More than any project has; a directory with more is not looked through to its end. */
const MOST_FILES = 10_000
const DEEPEST_DIRECTORY = 8
const SKIPPED: ReadonlySet<string> = new Set(['node_modules', '.git', 'target', 'dist', '.venv'])

/**
 * Every file of a tree that may be a worker, workshop or profile, sorted by path, links left out.
 * @param tree absolute
 * @returns paths relative to the tree
 */
export async function filesOfTree(tree: string): Promise<readonly string[]> {
  const found: string[] = []
  const walk = async (directory: string, depth: number): Promise<void> => {
    const entries = await readdir(path.join(tree, directory), { withFileTypes: true }).catch(() => [])
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (found.length >= MOST_FILES) return
      const file = path.join(directory, entry.name)
      if (entry.isDirectory() && depth < DEEPEST_DIRECTORY && !SKIPPED.has(entry.name)) await walk(file, depth + 1)
      if (entry.isFile() && /\.(worker|agent|md|ya?ml)$/.test(entry.name)) found.push(file)
    }
  }
  await walk('', 0)
  return found
}
