// Servers for tests, on all addresses: servers.mjs DIRECTORY
//
//   80, 8080  HTTP: the files of DIRECTORY (`index.html` where a directory is asked for), at /say who asks for what, and at /count how
//             long the body is
//   7         the server speaks first, then sends back what it gets, and ends when its client does
//   9         takes everything and tells how much it was when its client ends
//   19        sends 64 MiB
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createStream } from 'node:net'
import { join } from 'node:path'

const [directory] = process.argv.slice(2)

const countBody = (request, response) => {
  let bytes = 0
  request.on('data', (data) => {
    bytes += data.length
  })
  request.on('end', () => response.end(`${bytes} bytes\n`))
}

const http = (request, response) => {
  if (request.url === '/say') return response.end(`host=${request.headers.host} from=${request.socket.remoteAddress}\n`)
  if (request.url === '/count') return countBody(request, response)
  const { pathname } = new URL(request.url, 'http://x')
  const isDirectory = pathname.endsWith('/')
  try {
    const bytes = readFileSync(join(directory, pathname, isDirectory ? 'index.html' : ''))
    if (isDirectory) response.setHeader('content-type', 'text/html')
    response.end(bytes)
  } catch {
    response.writeHead(404).end()
  }
}

const echo = (socket) => {
  socket.write('hello\n')
  socket.pipe(socket)
}

const sink = (socket) => {
  let bytes = 0
  socket.on('data', (data) => {
    bytes += data.length
  })
  socket.on('end', () => socket.end(`${bytes}\n`))
}

const block = Buffer.alloc(1 << 20)

const source = (socket) => {
  let left = 64
  const more = () => {
    while (left > 0) {
      left -= 1
      if (!socket.write(block)) return socket.once('drain', more)
    }
    socket.end()
  }
  more()
}

const quiet = (handler) => (socket) => {
  socket.on('error', () => socket.destroy())
  handler(socket)
}

const servers = [
  [createServer(http), 80],
  [createServer(http), 8080],
  [createStream({ allowHalfOpen: true }, quiet(echo)), 7],
  [createStream({ allowHalfOpen: true }, quiet(sink)), 9],
  [createStream({ allowHalfOpen: true }, quiet(source)), 19],
]
let left = servers.length
for (const [server, port] of servers) {
  server.listen(port, '::', () => {
    left -= 1
    if (left === 0) process.stdout.write('ready\n')
  })
}
