// Counts what makes the English of this repository hard to read, room by room, and fails where there is more than the budget of the room.
//
//   plain-english            compare with scripts/plain-english.json
//   plain-english --show X   print each place in the rooms whose names begin with X
//   plain-english --lower    write the counts of today, none of which may be higher than the budget
//
// Comments of code and prose of docs are read; quoted text, code blocks and code in prose are not.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const BUDGET = join(ROOT, 'scripts/plain-english.json')

/** A comment names its subject; it does not begin with a clause in its place. */
const OPENING = /^(?:What|Who|Whose|Those|Which|Of an?|For what)\b/
const PHRASES =
  /\b(?:is no |nobody|whoever|by itself|is node's|of ours|of yours|of its own|(?:is|are) told|beside|stands for|goes on)\b/g
const LINE_MAX = 120
/** Sentences of a table are measured one by one: a row cannot be wrapped. */
const lengthOf = (line) => Math.max(...(line.startsWith('| ') ? line.split(' | ') : [line]).map((part) => part.length))

const COMMENT = { slashes: /(?:^|\s)\/\/ (.*)$/gm, block: /\/\*\*?([\s\S]*?)\*\//g, hash: /^# (.*)$/gm }
const COMMENTS_OF = {
  ts: [COMMENT.slashes, COMMENT.block],
  mjs: [COMMENT.slashes, COMMENT.block],
  c: [COMMENT.block],
  h: [COMMENT.block],
  yaml: [COMMENT.hash],
}

/** Text without its quotations. */
const unquoted = (text) => text.replaceAll(/`[^`]*`|"[^"\n]*"/g, '``')

function commentsOf(text, kind) {
  return COMMENTS_OF[kind].flatMap((pattern) =>
    [...text.matchAll(pattern)].map((match) => ({
      at: match.index,
      text: match[1].replaceAll(/\n\s*\* ?/g, ' ').trim(),
    })),
  )
}

/** Without code blocks, whose lines stay empty, so that the numbers of the others are right. */
const proseOf = (text) => text.replaceAll(/^```[\s\S]*?^```/gm, (block) => block.replaceAll(/[^\n]/g, ''))

const lineAt = (text, index) => text.slice(0, index).split('\n').length

function placesInCode(text, kind) {
  return commentsOf(text, kind).flatMap(({ at, text: comment }) => {
    const words = unquoted(comment)
    const found = [...(OPENING.test(words) ? [OPENING.exec(words)[0]] : []), ...(words.match(PHRASES) ?? [])]
    return found.map((what) => ({ line: lineAt(text, at), what }))
  })
}

function placesInProse(text) {
  return proseOf(text)
    .split('\n')
    .flatMap((line, index) => {
      const long = lengthOf(line) > LINE_MAX ? [`${lengthOf(line)} characters`] : []
      return [...long, ...(unquoted(line).match(PHRASES) ?? [])].map((what) => ({ line: index + 1, what }))
    })
}

const kindOf = (file) => /\.(\w+)$/.exec(file)?.[1] ?? ''

/** `src/report`, `native/lib`, `tests`, `docs/guide`: the rooms that have a budget. */
function roomOf(file) {
  const [top, room] = file.split('/')
  return (top === 'src' || top === 'native' || top === 'docs') && file.split('/').length > 2
    ? `${top}/${room}`
    : file.includes('/')
      ? top
      : 'root'
}

const generated = new Set(['src/contract.ts', 'native/lib/contract.h', 'docs/internals/adversary.md'])

export function placesOf(file, text) {
  const kind = kindOf(file)
  const places = kind === 'md' ? placesInProse(text) : placesInCode(text, kind)
  return places.map((place) => ({ file, ...place }))
}

function allPlaces() {
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0')
  return files
    .filter((file) => (kindOf(file) === 'md' || kindOf(file) in COMMENTS_OF) && !generated.has(file))
    .flatMap((file) => placesOf(file, readFileSync(join(ROOT, file), 'utf8')))
}

function countsOf(places) {
  const counts = {}
  for (const { file } of places) counts[roomOf(file)] = (counts[roomOf(file)] ?? 0) + 1
  return Object.fromEntries(Object.entries(counts).toSorted(([one], [other]) => one.localeCompare(other)))
}

function main([flag, room = '']) {
  const places = allPlaces()
  const counts = countsOf(places)
  const budget = JSON.parse(readFileSync(BUDGET, 'utf8'))
  const over = Object.entries(counts).filter(([name, count]) => count > (budget[name] ?? 0))
  if (flag === '--show') {
    const shown = places.filter(({ file }) => roomOf(file).startsWith(room))
    for (const { file, line, what } of shown) console.log(`${file}:${line}: ${what}`)
  } else if (over.length > 0) {
    for (const [name, count] of over)
      console.error(`plain-english: ${name}: expected at most ${budget[name] ?? 0} hard sentences, got ${count}`)
    console.error(`hint: node scripts/plain-english.mjs --show ${over[0][0]}`)
    process.exitCode = 1
  } else if (flag === '--lower') writeFileSync(BUDGET, `${JSON.stringify(counts, undefined, 2)}\n`)
}

if (process.argv[1] === import.meta.filename) main(process.argv.slice(2))
