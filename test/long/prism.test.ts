import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { startLinks } from '../helpers/links.ts'
import { contractFaults } from '../runner/contract.ts'
import type { Exchange } from '../runner/exchanges.ts'

// What prism says of a whole run stands at the end of the run. This shows that it would say something.

t.test('prism says what is not as the document has it', async (t) => {
  const links = await startLinks(t, backends[1])
  const { text } = await request(`${links.base}/api/openapi.yaml`)
  const { status, headers, body } = await request(`${links.base}/api/v1/config`)
  const exchange: Exchange = {
    ...{ service: 'links', method: 'GET', target: '/api/v1/config', headers: {}, body: '' },
    ...{ status, answerHeaders: headers, answer: body.toString('base64') },
  }
  t.same(await contractFaults(t, text, [exchange]), [])
  const wrong = text.replace(
    'short_keyword:\n          type: string',
    'short_keyword:\n          type: integer',
  )
  t.not(wrong, text)
  const [fault] = await contractFaults(t, wrong, [exchange])
  t.match(fault, /^GET \/api\/v1\/config → 200: response\.body\.short_keyword \(type\)/)
})
