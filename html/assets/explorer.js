// Starts the explorer on the description beside it. Calls go to the server that this page is from:
// its policy allows no other, and the public address may be another.
const ui = globalThis.SwaggerUIBundle({
  dom_id: '#explorer',
  url: '../openapi.yaml',
  // No badge of an outside validator, no settings from the page's address.
  validatorUrl: null,
  queryConfigEnabled: false,
  deepLinking: true,
  displayOperationId: false,
  defaultModelsExpandDepth: 0,
  tryItOutEnabled: true,
  onComplete: () => ui.oas3Actions.setSelectedServer('/'),
})

// Its style sheet knows dark colours by a class alone.
const dark = matchMedia('(prefers-color-scheme: dark)')
const setColours = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', setColours)
setColours()
