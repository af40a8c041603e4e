import { html, render } from '../../kernel/html.ts'
import { SEARCH_NAME } from './layout.ts'

/** The search as browsers see it. Its addresses begin with the public one of the service. */
export interface SearchDescription {
  readonly baseUrl: string
  /** The short-link prefix, such as `go`. */
  readonly keyword: string
}

/** The OpenSearch 1.1 description of the service (an XML document). */
export function searchDescription({ baseUrl, keyword }: SearchDescription): string {
  return render(
    html`<?xml version="1.0" encoding="UTF-8"?>
      <OpenSearchDescription
        xmlns="http://a9.com/-/spec/opensearch/1.1/"
        xmlns:moz="http://www.mozilla.org/2006/browser/search/"
      >
        <ShortName>${SEARCH_NAME}</ShortName>
        <Description
          >Short links of ${keyword}: type a link's name, and what should follow it</Description
        >
        <InputEncoding>UTF-8</InputEncoding>
        <image width="16" height="16" type="image/svg+xml">${baseUrl}/-/assets/icon.svg</image>
        <Url type="text/html" method="get" template="${baseUrl}/-/go?q={searchTerms}" />
        <Url
          type="application/x-suggestions+json"
          method="get"
          template="${baseUrl}/-/suggest?q={searchTerms}"
        />
        <Url
          type="application/opensearchdescription+xml"
          rel="self"
          template="${baseUrl}/-/opensearch.xml"
        />
        <moz:SearchForm>${baseUrl}/-/all</moz:SearchForm>
      </OpenSearchDescription> `,
  )
}
