// HTTP/2 and HTTP/1.1 over TLS on port 443 of all addresses: secure-server.mjs KEY CERTIFICATE
import { readFileSync } from 'node:fs'
import { createSecureServer } from 'node:http2'

const [key, certificate] = process.argv.slice(2)
const files = { key: readFileSync(key), cert: readFileSync(certificate) }
const server = createSecureServer({ ...files, allowHTTP1: true }, (request, response) => {
  response.end(`http=${request.httpVersion} from=${request.socket.remoteAddress}\n`)
})
server.listen(443, '::', () => process.stdout.write('ready\n'))
