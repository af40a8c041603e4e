import { parse } from 'yaml'

/** The parts of an OpenAPI document that tests look at. */
export type Document = {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string }
  readonly servers: readonly { readonly url: string }[]
  readonly security: unknown
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly responses: Readonly<
      Record<
        string,
        { readonly content: { readonly 'application/json': { readonly schema: Schema } } }
      >
    >
    readonly securitySchemes: unknown
  }
}

/** An operation as a document has it. */
export type Described = {
  readonly operationId: string
  readonly security?: readonly unknown[]
  readonly requestBody?: unknown
  readonly responses: Readonly<Record<string, { readonly $ref?: string }>>
}

type Schema = {
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly allOf?: readonly Schema[]
  readonly enum?: readonly string[]
}

/** Reads a document. */
export function openApiOf(text: string): Document {
  return parse(text)
}

/** Every operation with its method in capitals and its path. */
export function operationsOf({ paths }: Document): readonly {
  readonly method: string
  readonly path: string
  readonly operation: Described
}[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  )
}
