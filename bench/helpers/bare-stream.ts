import { createServer, type ServerResponse } from 'node:http'

/** The ceiling: for each POST one frame of given text to every client by `res.write`, and nothing else. */
const frame = Buffer.from(process.argv[2] ?? '')
const clients = new Set<ServerResponse>()
const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    response.write('retry: 3000\n\n')
    clients.add(response)
    response.on('close', () => clients.delete(response))
    return
  }
  request.resume().on('end', () => {
    response.writeHead(202, { 'content-length': 0 }).end()
    for (const client of clients) client.write(frame)
  })
})
server.listen(0, '127.0.0.1', 4_096, () => {
  const address = server.address()
  console.log(typeof address === 'object' ? address?.port : '')
})
