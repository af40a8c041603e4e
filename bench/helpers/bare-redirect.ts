import { createServer } from 'node:http'

/** The ceiling: bare node:http that answers a 302 from a Map, and does nothing else. */
const count = Number(process.argv[2])
const targets = new Map<string, string>()
for (let n = 0; n < count; n++) targets.set(`/bench-${n}`, `https://example.com/page/${n}`)

const server = createServer((request, response) => {
  const location = targets.get(request.url ?? '')
  if (location === undefined) response.writeHead(404, { 'content-length': 0 })
  else response.writeHead(302, { location, 'content-length': 0 })
  response.end()
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(typeof address === 'object' ? address?.port : '')
})
