// A name server for tests: name-server.mjs ADDRESS QUESTIONS ZONE
//
// ZONE is JSON: name -> list of answers, one a question and the last for ever; an answer is a list of addresses, or `fail`. Besides
// addresses it may have `=NAME`, of which the name is an alias, and `!ADDRESS`, which comes first in replies that are not to the question.
// An answer that does not fit a datagram is cut off, and sent over TCP.
// `*.x` answers for the names below `x` that are not there themselves.
// Each question is written to the file QUESTIONS, a line each: what a sandbox asks for is seen there.
import { createSocket } from 'node:dgram'
import { appendFileSync } from 'node:fs'
import { createServer, isIPv4 } from 'node:net'

const [address, questions, zoneText] = process.argv.slice(2)
const zone = JSON.parse(zoneText)
const asked = new Map()
const [A, AAAA] = [1, 28]

/** The name, and where the question ends. */
function readQuestion(message) {
  const labels = []
  let at = 12
  for (; message[at] !== 0; at += 1 + message[at]) labels.push(message.toString('latin1', at + 1, at + 1 + message[at]))
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 }
}

/** Both types of one question get the same answer. */
function answerFor(name, type) {
  const key = `${name} ${type}`
  const count = asked.get(key) ?? 0
  asked.set(key, count + 1)
  const answers = zone[name] ?? zone[name.replace(/^[^.]+/, '*')]
  return answers?.[Math.min(count, answers.length - 1)]
}

function bytesOf(text) {
  if (isIPv4(text)) return Buffer.from(text.split('.').map(Number))
  const [head, tail = ''] = new URL(`http://[${text}]`).hostname.slice(1, -1).split('::')
  const groups = (part) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)))
  const [first, last] = [groups(head), groups(tail)]
  const all = [...first, ...Array(8 - first.length - last.length).fill(0), ...last]
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]))
}

const nameBytes = (name) =>
  Buffer.from([...name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)]), 0])

function record(owner, type, data) {
  return Buffer.concat([owner, Buffer.from([0, type, 0, 1, 0, 0, 0, 1, 0, data.length]), data])
}

const QUESTION_NAME = Buffer.from([0xc0, 0x0c])
const CNAME = 5

/** The records of an answer: aliases, and the addresses of the last of them. */
function recordsOf(answer, type) {
  const aliases = answer.filter((text) => text.startsWith('=')).map((text) => nameBytes(text.slice(1)))
  const owners = [QUESTION_NAME, ...aliases]
  const found = answer.filter(
    (text) => !/^[=!]/.test(text) && isIPv4(text) === (type === A) && (type === A || type === AAAA),
  )
  return [
    ...aliases.map((target, at) => record(owners[at], CNAME, target)),
    ...found.map((text) => record(owners.at(-1), type, bytesOf(text))),
  ]
}

function reply(message, end, code, records, flags = 0x81) {
  const head = Buffer.from([message[0], message[1], flags, 0x80 | code, 0, 1, 0, records.length, 0, 0, 0, 0])
  return Buffer.concat([head, message.subarray(12, end), ...records])
}

/** One with another id, and one to another question. */
function forgeries(message, end, type, answer) {
  const records = answer
    .filter((text) => text.startsWith('!'))
    .map((text) => record(QUESTION_NAME, type, bytesOf(text.slice(1))))
  if (records.length === 0) return []
  const [id, question] = [Buffer.from(message), Buffer.from(message)]
  id[1] ^= 1
  question[13] ^= 1
  return [id, question].map((from) => reply(from, end, 0, records))
}

const TRUNCATED = 0x83
const DATAGRAM = 512

function repliesTo(message) {
  const { name, type, end } = readQuestion(message)
  appendFileSync(questions, `${name}\n`)
  const answer = answerFor(name, type)
  const code = answer === undefined ? 3 : answer === 'fail' ? 2 : 0
  const records = code === 0 ? recordsOf(answer, type) : []
  const short = () => reply(message, end, 0, [], TRUNCATED)
  return {
    forged: code === 0 ? forgeries(message, end, type, answer) : [],
    whole: reply(message, end, code, records),
    short,
  }
}

const server = createSocket('udp4')
server.on('message', (message, { port, address: from }) => {
  const { forged, whole, short } = repliesTo(message)
  for (const each of [...forged, whole.length > DATAGRAM ? short() : whole]) server.send(each, port, from)
})
const streams = createServer((socket) => {
  let have = Buffer.alloc(0)
  socket.on('error', () => socket.destroy())
  socket.on('data', (data) => {
    have = Buffer.concat([have, data])
    for (
      ;
      have.length >= 2 && have.length >= 2 + have.readUInt16BE(0);
      have = have.subarray(2 + have.readUInt16BE(0))
    ) {
      const { whole } = repliesTo(have.subarray(2, 2 + have.readUInt16BE(0)))
      socket.write(Buffer.concat([Buffer.from([whole.length >> 8, whole.length & 0xff]), whole]))
    }
  })
})
streams.listen(53, address, () => server.bind(53, address, () => process.stdout.write('ready\n')))
