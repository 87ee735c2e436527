// HTTPS in the world of a test (tls-server.mjs): answers with what it got, as JSON, and serves the files of DIRECTORY/web.
import { readFileSync } from 'node:fs'
import { join, normalize } from 'node:path'
import { directory, listen, note, server } from './tls-server.mjs'

const answers = {
  '/large': (_request, response) => {
    const chunk = Buffer.alloc(1 << 20, 'x')
    let left = 64
    const more = () => {
      while (left > 0) {
        left -= 1
        if (!response.write(chunk)) return void response.once('drain', more)
      }
      response.end()
    }
    more()
  },
  '/cut': (_request, response) => {
    response.writeHead(200, { 'Content-Length': 100 })
    response.write('begun')
    setTimeout(() => response.destroy(), 50)
  },
  '/closing': (_request, response) => {
    response.writeHead(200, { Connection: 'close' })
    response.end('closing\n')
  },
}
/** Heads that node reads, and does not write. */
const oddities = {
  '/odd/reason': 'HTTP/1.1 200 O\x01K',
  '/odd/status': 'HTTP/1.1 099 OK',
}

function file(url) {
  try {
    return readFileSync(join(directory, 'web', normalize(url.split('?')[0])))
  } catch {
    return undefined
  }
}

server.on('request', (request, response) => {
  const { method, url, rawHeaders } = request
  note(`${method} ${url}`)
  const special = answers[url]
  if (special !== undefined) return special(request, response)
  if (oddities[url]) return request.socket.end(`${oddities[url]}\r\nContent-Length: 0\r\n\r\n`)
  const found = file(url)
  if (found !== undefined) return response.end(found)
  if (url.startsWith('/web/')) return response.writeHead(404).end()
  let size = 0
  request.on('data', (bytes) => {
    size += bytes.length
  })
  request.on('end', () => response.end(`${JSON.stringify({ method, url, rawHeaders, size })}\n`))
})
server.on('upgrade', ({ method, url, rawHeaders }, socket) => {
  note(`${method} ${url} upgrade`)
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  socket.write(`${JSON.stringify({ rawHeaders })}\n`)
  socket.on('error', () => socket.destroy())
  socket.pipe(socket)
})
listen()
