import { validate } from '../../kernel/validate.ts'
import { accepted } from '../../kernel/variables.ts'
import { readSchemeRow, SchemeFields } from '../../services/hooks/receive/schemes/form.ts'
import { presetNamed } from '../../services/hooks/receive/schemes/schemes.ts'
import { fieldsOf, readFields, text, value } from '../frame/command.ts'

// The flags that name how a sender signs, and those that describe a sender of its own kind.

const scheme = accepted(
  'the name of a sender, such as github, or hmac; see: gatehouse schemes',
  (name) => presetNamed(name)?.name,
)

/** How a sender proves itself. */
export const SCHEME_FLAG = value('SCHEME', scheme.form, scheme)

/** A row of the scheme `hmac`; of other schemes, where type and id stand, and what is expected. */
export const ROW_FLAGS = {
  header: text('NAME', 'hmac: the header that has the signature'),
  prefix: text('TEXT', 'hmac: the text before the signature in its header, such as sha256='),
  encoding: text('ENCODING', 'hmac: hex (unless given), base64 or base64url'),
  algorithm: text('ALGORITHM', 'hmac: sha256 (unless given) or sha512'),
  'signed-text': text(
    'TEXT',
    'hmac: what is signed, {body} unless given, or such as {timestamp}.{body}',
  ),
  'timestamp-header': text('NAME', 'hmac: the header of {timestamp}, in Unix seconds'),
  'event-type-header': text('NAME', "the header of the event type, in place of the scheme's"),
  'event-type-json': text('PATH', 'the member of the body that is the event type, likewise'),
  'id-header': text('NAME', 'the header of the delivery id, likewise'),
  topics: text('LIST', 'aws-sns: the ARNs of the topics whose events are accepted'),
  issuer: text('URL', 'openid: the issuer of the tokens'),
  audience: text('TEXT', 'openid, google-pubsub: the audience that a token must name'),
  subject: text('TEXT', 'openid, google-pubsub: the sub or e-mail address that a token must name'),
}

/** The row that the flags describe. */
export function rowOf(
  scheme: string | undefined,
  flags: Readonly<Record<keyof typeof ROW_FLAGS, string | undefined>>,
) {
  const fields = fieldsOf(SchemeFields, flags)
  return readFields(() => readSchemeRow(scheme ?? '', validate(SchemeFields, fields)))
}
