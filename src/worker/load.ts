/**
 * Finds worker and workshop files and reads them, bounded; the real file must be inside the project.
 * Edge: reads files and directories of the project.
 */
import { constants } from 'node:fs'
import { type FileHandle, open, readdir, realpath } from 'node:fs/promises'
import path from 'node:path'
import { SandboxError } from '../error.ts'
import { isWithin } from '../plan/well-known-paths.ts'
import { didYouMean } from '../text/did-you-mean.ts'
import { quoteText } from '../text/units.ts'
import { LARGEST_FILE } from './frontmatter.ts'
import { invalidWorker } from './problem.ts'
import type { FileText } from './read.ts'
import { hiddenCharacter } from './shell-words.ts'

export interface Finding {
  /** Absolute and canonical: the project, and what relative names are relative to. */
  readonly cwd: string
  /** What `~/` stands for, absolute; empty when there is none. */
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

const EXTENSIONS = ['.worker', '.agent', '.md'] as const

/** Where a name is looked for, best first, relative to the project. */
function candidatesFor(name: string): readonly string[] {
  return [
    ...EXTENSIONS.map((extension) => name + extension),
    ...EXTENSIONS.map((extension) => path.join('workers', name + extension)),
    path.join('workers', name, 'worker.worker'),
    path.join('.claude', 'agents', `${name}.md`),
    path.join('.claude', 'skills', name, 'SKILL.md'),
  ]
}

/** A path has a slash or the ending of a file; anything else is a name. */
function isPath(word: string): boolean {
  return word.includes('/') || /\.(worker|agent|md|ya?ml)$/.test(word)
}

/**
 * Reads the worker of this name or path.
 * @throws SandboxError WORKER_NOT_FOUND, or WORKER_INVALID for what is no readable file inside the project
 */
export async function findWorker(word: string, finding: Finding): Promise<FoundFile> {
  refuseHidden(word)
  if (isPath(word)) return await readNamed(word, finding)
  const candidates = candidatesFor(word).map((candidate) => ({
    shown: candidate,
    at: path.join(finding.cwd, candidate),
  }))
  for (const [index, candidate] of candidates.entries()) {
    const found = await readIfThere({ ...candidate, within: finding.cwd, home: finding.home })
    if (found !== undefined) return { ...found, before: candidates.slice(0, index).map(({ at }) => at) }
  }
  const { shippedDirectory: within, home } = finding
  const shipped =
    within === ''
      ? undefined
      : await readIfThere({
          shown: path.join(within, `${word}.worker`),
          at: path.join(within, `${word}.worker`),
          within,
          home,
        })
  if (shipped !== undefined) return { ...shipped, before: candidates.map(({ at }) => at) }
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

/** O_NONBLOCK: a FIFO in the place of a worker must not make us wait for its writer. */
const READING = constants.O_RDONLY | constants.O_NONBLOCK

async function readIfThere({ shown, at, within, home }: Wanted): Promise<FoundFile | undefined> {
  const wrong = (expected: string, got: string) =>
    invalidWorker([{ file: shown, key: '', expected, got }], `ls -ld ${quoteText(at)}`)
  try {
    const real = await realpath(at)
    if (!isWithin(real, within)) throw wrong(`a file inside ${within}`, `a link to ${quoteText(real)}`)
    const handle = await open(real, READING)
    try {
      const text = await readText(handle, wrong)
      return { file: shown, directory: path.dirname(real), home, text, real, at, before: [] }
    } finally {
      await handle.close()
    }
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

async function readText(handle: FileHandle, wrong: (expected: string, got: string) => SandboxError): Promise<string> {
  const facts = await handle.stat()
  if (!facts.isFile()) throw wrong('a regular file', facts.isDirectory() ? 'a directory' : 'something else')
  const buffer = new Uint8Array(LARGEST_FILE + 1)
  const length = await readAll(handle, buffer)
  if (length > LARGEST_FILE) throw wrong(`at most ${LARGEST_FILE} bytes`, 'more')
  try {
    // The byte order mark is the reader's to take away: it knows that a second one is text.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(buffer.subarray(0, length))
  } catch {
    throw wrong('UTF-8 text', 'other bytes')
  }
}

async function readAll(handle: FileHandle, buffer: Uint8Array): Promise<number> {
  let length = 0
  while (length < buffer.length) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, null)
    if (bytesRead === 0) return length
    length += bytesRead
  }
  return length
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
  const own = [
    ...(await namesIn({ cwd, directory: '', extensions: ['.worker', '.agent'] })),
    ...(await namesIn({ cwd, directory: 'workers', extensions: EXTENSIONS })),
    ...(await namesBelow({ cwd, directory: 'workers', file: 'worker.worker' })),
    ...(await namesIn({ cwd, directory: path.join('.claude', 'agents'), extensions: ['.md'] })),
    ...(await namesBelow({ cwd, directory: path.join('.claude', 'skills'), file: 'SKILL.md' })),
  ].map((found) => ({ ...found, from: 'project' as const }))
  const shipped =
    shippedDirectory === '' ? [] : await namesIn({ cwd: shippedDirectory, directory: '', extensions: ['.worker'] })
  const visible = shipped.filter(({ name }) => !own.some((found) => found.name === name))
  const all = [
    ...own,
    ...visible.map(({ name, file }) => ({ name, file: path.join(shippedDirectory, file), from: 'shipped' as const })),
  ]
  return all.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}

interface Listing {
  readonly cwd: string
  readonly directory: string
}
type Named = Pick<ListedFile, 'name' | 'file'>

async function namesIn({
  cwd,
  directory,
  extensions,
}: Listing & { readonly extensions: readonly string[] }): Promise<readonly Named[]> {
  return (await namesOf(path.join(cwd, directory))).flatMap((file) => {
    const extension = extensions.find((candidate) => file.endsWith(candidate) && file.length > candidate.length)
    const isPage = /^(README|CHANGELOG|LICENSE|CONTRIBUTING)\.md$/i.test(file)
    return extension === undefined || isPage
      ? []
      : [{ name: file.slice(0, -extension.length), file: path.join(directory, file) }]
  })
}

async function namesBelow({ cwd, directory, file }: Listing & { readonly file: string }): Promise<readonly Named[]> {
  const names = await namesOf(path.join(cwd, directory))
  const inside = await Promise.all(names.map((name) => namesOf(path.join(cwd, directory, name))))
  return names
    .filter((_, index) => inside[index]?.includes(file))
    .map((name) => ({ name, file: path.join(directory, name, file) }))
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
