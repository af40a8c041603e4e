import { parse } from 'yaml'
import { request, type RequestOptions, type Response } from './http.ts'
import { keepSecret } from './secrets.ts'

/** An instant as every API writes it. */
export const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/**
 * A call of a service's API: `/links` stands for `/api/v1/links`. A body that is no text and no bytes is
 * sent as JSON. A token in the answer is registered as a secret.
 */
export type Api = ReturnType<typeof apiOf>

/** An answer; `json`, of the type that the test then checks, is undefined when it has no JSON. */
export type ApiResponse<T> = Omit<Response, 'json'> & { json: T }

/** Calls the API of the service at `base`, with a token or without one. */
export function apiOf(base: string, token?: string) {
  return async <T>(
    method: string,
    path: string,
    body?: unknown,
    headers: RequestOptions['headers'] = {},
  ) => {
    const raw = typeof body === 'string' || body instanceof Uint8Array || Array.isArray(body)
    const response = await request(`${base}/api/v1${path}`, {
      method,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: raw ? body : JSON.stringify(body) }),
      secretShown: method === 'POST' && path === '/tokens',
      timeoutMs: 30_000,
    })
    const json = parsed(response.text)
    if (typeof json === 'object' && json !== null && 'token' in json) {
      keepSecret('api-token', String(json.token))
    }
    return { ...response, json: json as T }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // A page, for instance: the test looks at the text then.
    return undefined
  }
}

/** The parts of an OpenAPI document that tests look at. */
export type Document = {
  openapi: string
  info: { title: string; version: string }
  servers: readonly { url: string }[]
  security: unknown
  paths: Record<string, Record<string, Described>>
  components: {
    schemas: Record<string, Schema>
    responses: Record<string, { content: { readonly 'application/json': { schema: Schema } } }>
    securitySchemes: unknown
  }
}

/** An operation as a document has it. */
export type Described = {
  operationId: string
  security?: readonly unknown[]
  requestBody?: unknown
  responses: Record<string, { $ref?: string }>
}

type Schema = {
  $ref?: string
  properties?: Record<string, Schema>
  allOf?: readonly Schema[]
  enum?: readonly string[]
}

/** Reads a document. */
export function openApiOf(text: string): Document {
  return parse(text)
}

/** Every operation with its method in capitals and its path. */
export function operationsOf({ paths }: Document) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )
}
