import { html, type Html } from '../kernel/html.ts'

/** The page of an API's explorer; `folder` has its files, and its script knows where the document is. */
export function explorerPage(title: string, folder: string): Html {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title} · Gatehouse</title>
        <link rel="icon" href="${folder}/icon.svg" type="image/svg+xml" />
        <link rel="stylesheet" href="${folder}/swagger-ui.css" />
        <link rel="stylesheet" href="${folder}/explorer.css" />
        <script src="${folder}/swagger-ui-bundle.js" defer></script>
        <script src="${folder}/explorer.js" defer></script>
      </head>
      <body>
        <main id="explorer">
          <noscript>
            <p>
              The explorer needs JavaScript. The description that it shows is at
              <a href="../openapi.yaml">openapi.yaml</a>.
            </p>
          </noscript>
        </main>
      </body>
    </html> `
}
