// A company's proxy: connect-proxy.mjs PORT LOG JSON
//
// JSON: { user: "name:password" (asked for), names: { NAME: ADDRESS } (where they lead; others are refused with 502),
//         answers: { NAME: what is said in the place of a tunnel } }. An answer `slow` never comes to an end, `large` has no end of its head.
// Each head that comes is a line of LOG, as JSON.
import { appendFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'

const [port, log, text = '{}'] = process.argv.slice(2)
const { user, names = {}, answers = {} } = JSON.parse(text)

const ANSWERS = {
  large: `HTTP/1.1 200 OK\r\n${'X-Large: 1\r\n'.repeat(4000)}`,
  slow: 'HTTP/1.1 200 OK\r\n',
}

const serve = (socket, head) => {
  appendFileSync(log, `${JSON.stringify(head)}\n`)
  const [, name = '', target = ''] = /^CONNECT ([^:]+):(\d+) HTTP/.exec(head) ?? []
  const proof = `Proxy-Authorization: Basic ${Buffer.from(user ?? '').toString('base64')}`
  if (user !== undefined && !head.includes(proof))
    return socket.end('HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n\r\n')
  const answer = answers[name]
  if (answer === 'slow') {
    socket.write(ANSWERS.slow)
    const timer = setInterval(() => socket.write('X-Slow: 1\r\n'), 100)
    return socket.once('close', () => clearInterval(timer))
  }
  if (answer !== undefined) return socket.write(ANSWERS[answer] ?? answer)
  if (names[name] === undefined) return socket.end('HTTP/1.1 502 No\r\n\r\n')
  const outside = connect(Number(target), names[name], () => {
    socket.write('HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n')
    socket.pipe(outside).pipe(socket)
  })
  outside.on('error', () => socket.destroy())
  socket.on('close', () => outside.destroy())
}

createServer((socket) => {
  let head = ''
  const read = (bytes) => {
    head += bytes
    if (!head.includes('\r\n\r\n')) return
    socket.off('data', read)
    serve(socket, head)
  }
  socket.on('data', read)
  socket.on('error', () => socket.destroy())
}).listen(Number(port), '127.0.0.1', () => console.log('ready'))
