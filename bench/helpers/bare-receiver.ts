import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

/** The ceiling: bare node:http that reads the body, verifies it and answers, without a database. */
const secret = process.argv[2] ?? ''
const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const expected = createHmac('sha256', secret).update(Buffer.concat(chunks)).digest()
    const given = Buffer.from(String(request.headers['x-hub-signature-256']).slice(7), 'hex')
    const body = JSON.stringify({
      id: 1,
      provider: 'code_host',
      verified: timingSafeEqual(expected, given),
    })
    response.writeHead(202, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    })
    response.end(body)
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(typeof address === 'object' ? address?.port : '')
})
