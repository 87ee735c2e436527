// HTTPS in the world of a test: echo-server.mjs DIRECTORY PORT LOG NAME... answers with what it got, as JSON, and serves the files of DIRECTORY/web.
// NAME.key and NAME.pem in DIRECTORY are the certificates, by SNI, and the first one without. LOG gets a line for each request.
import { appendFileSync, readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join, normalize } from 'node:path'
import { createSecureContext } from 'node:tls'

const [directory, port, log, ...names] = process.argv.slice(2)
const filesOf = (name) => ({
  key: readFileSync(join(directory, `${name}.key`)),
  cert: readFileSync(join(directory, `${name}.pem`)),
})
const contexts = Object.fromEntries(names.map((name) => [name, createSecureContext(filesOf(name))]))
const server = createServer({
  ...filesOf(names[0]),
  SNICallback: (name, done) => done(null, contexts[name] ?? contexts[names[0]]),
})

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
  appendFileSync(log, `${method} ${url}\n`)
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
  appendFileSync(log, `${method} ${url} upgrade\n`)
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  socket.write(`${JSON.stringify({ rawHeaders })}\n`)
  socket.on('error', () => socket.destroy())
  socket.pipe(socket)
})
server.listen(Number(port), '::', () => process.stdout.write('ready\n'))
