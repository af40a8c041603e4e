import { createServer } from 'node:http'

/** The ceiling: bare node:http that reads each request's body and answers it with the same JSON text. */
const body = Buffer.from(process.argv[2] ?? '')
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(typeof address === 'object' ? address?.port : '')
})
