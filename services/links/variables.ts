import { pattern, address, baseUrl, optional } from '../../kernel/variables.ts'

const HOST_NAME = /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/i

/** The variables of the links service. */
export const linksVariables = {
  LINKS_ADDR: address('127.0.0.1:8081'),
  LINKS_BASE_URL: baseUrl(),
  LINKS_SHORT_KEYWORD: optional({
    form: 'a host name such as go',
    read: (text) => pattern('', HOST_NAME).read(text).toLowerCase(),
  }),
}
