/** Finds exported names whose doc comment is missing, or does not say what a caller has to know. */
import ts from 'typescript'
import { createProgram, type EntryPoint, exportedNames, fileOf, isOurs } from './entry-points.ts'

/** A name that apps see: an export, or a member of one. */
interface PublicName {
  /** Such as `LlmOptions.models`. */
  readonly path: string
  readonly symbol: ts.Symbol
  readonly declaration: ts.Declaration
  /** Text and tags of the comment. Empty without one. */
  readonly comment: string
  /** Whether callers write the value: a property of options, of settings, of a query or of a request. */
  readonly isInput: boolean
}

/** Such as `packages/core/src/llm.ts:12 Llm.models`, by what is wrong. */
export interface Findings {
  readonly count: number
  readonly undocumented: readonly string[]
  /** The comment has no word that the name does not have. */
  readonly repeatingTheName: readonly string[]
  /** An optional property of options, whose comment does not say what its absence means. */
  readonly withoutDefault: readonly string[]
  /** A number in options, whose comment has neither a unit nor a bound. */
  readonly withoutUnit: readonly string[]
  /** A function that throws a typed error itself, whose comment does not say so. */
  readonly withoutErrors: readonly string[]
}

const inputName =
  /(Options|Settings|Query|Extras|Changes|Input|Sampling)$|^(Generate|Embed|Rerank|Tokenize|Detokenize|CreateModel)Request$/

/** What the absence of an option means. */
const saysDefault =
  /@default|[Dd]efault|[Ww]ithout|[Aa]bsent|[Uu]nless|[Ii]f (not|missing)|[Nn]one|undefined|[Oo]therwise/

/** A unit or a bound, in the comment or the name of a number. */
const saysUnit =
  /\d|\b(ms|milliseconds?|seconds?|days?|bytes|tokens|characters|layers|whole number|number of|how many|count|share|weight|version|status|port|size)\b/i

const saysError = /@throws|\b(throws?|rejects?|rejected|refuses?|fails?|error)\b/i

/**
 * @param files the source file of each entry point
 * @param texts of files that are not on disk, by path
 */
export function findGaps(
  files: ReadonlyMap<EntryPoint, string>,
  texts: Readonly<Record<string, string>> = {},
): Findings {
  const program = createProgram([...files.values()], texts)
  const names = publicNames(program, files)
  const placesOf = (isWrong: (name: PublicName) => boolean) => names.filter(isWrong).map(placeOf)
  const documented = names.filter(({ comment }) => comment !== '')
  return {
    count: names.length,
    undocumented: placesOf(({ comment }) => comment === ''),
    repeatingTheName: documented.filter(repeatsName).map(placeOf),
    withoutDefault: placesOf(
      ({ isInput, symbol, comment }) =>
        isInput && (symbol.flags & ts.SymbolFlags.Optional) !== 0 && !saysDefault.test(comment),
    ),
    withoutUnit: placesOf(
      (name) =>
        name.isInput && isNumber(program, name) && !saysUnit.test(`${name.symbol.name} ${name.comment}`),
    ),
    withoutErrors: placesOf((name) => throwsTyped(name.declaration) && !saysError.test(name.comment)),
  }
}

/** The exported names of all entry points and their members, each once. Those of other packages are left out. */
function publicNames(program: ts.Program, files: ReadonlyMap<EntryPoint, string>): readonly PublicName[] {
  const checker = program.getTypeChecker()
  // By declaration, since each type that inherits a generic member has a symbol of its own for it.
  const found = new Map<ts.Declaration, PublicName>()

  function add(path: string, symbol: ts.Symbol, isInput: boolean): void {
    const declaration = symbol.declarations?.find(isSource)
    if (!declaration || found.has(declaration)) return
    found.set(declaration, {
      path,
      symbol,
      declaration,
      comment: commentOf(checker, symbol, declaration),
      isInput,
    })
  }

  for (const { name, symbol } of exportedNames(program, files)) {
    const isInput = inputName.test(name)
    add(name, symbol, isInput)
    for (const member of membersOf(checker, symbol)) add(`${name}.${member.name}`, member, isInput)
  }
  return [...found.values()]
}

/** Our source, apart from the built declarations through which packages see each other. */
const isSource = (node: ts.Node): boolean => isOurs(node) && !fileOf(node).includes('/dist/')

/**
 * The members of an interface, of a class, and of the object types of a union. Left out: private members, tags of unions,
 * names that the language or another library gives, such as `Symbol.asyncIterator` and `~standard`, and object types in
 * one line, which the comment above them describes.
 */
function membersOf(checker: ts.TypeChecker, symbol: ts.Symbol): readonly ts.Symbol[] {
  const statics = symbol.flags & ts.SymbolFlags.Class ? [...(symbol.exports?.values() ?? [])] : []
  const own =
    symbol.flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.Class)
      ? checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol))
      : (symbol.declarations ?? [])
          .flatMap((node) => (ts.isTypeAliasDeclaration(node) ? objectsOf(node.type) : []))
          .flatMap(({ members }) =>
            members.flatMap(({ name }) => (name && checker.getSymbolAtLocation(name)) ?? []),
          )
  return [...own, ...statics].filter(({ valueDeclaration: node }) => {
    if (!node || !ts.isIdentifier(ts.getNameOfDeclaration(node) ?? node)) return false
    if (ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Private) return false
    return !isTag(checker.getTypeAtLocation(node)) && !isInOneLine(node.parent)
  })
}

/** Whether a property tells the types of a union apart: its type is a single literal, or it is always absent. */
const isTag = (type: ts.Type): boolean => type.isLiteral() || (type.flags & ts.TypeFlags.Undefined) !== 0

const isInOneLine = (node: ts.Node): boolean => !node.getText().includes('\n')

/** The object types that a type is made of. */
function objectsOf(node: ts.TypeNode): readonly ts.TypeLiteralNode[] {
  if (ts.isTypeLiteralNode(node)) return [node]
  if (ts.isParenthesizedTypeNode(node)) return objectsOf(node.type)
  return ts.isUnionTypeNode(node) || ts.isIntersectionTypeNode(node) ? node.types.flatMap(objectsOf) : []
}

/** The text of a comment, and then its tags. Empty without a text, and for the comment at the top of a file. */
function commentOf(checker: ts.TypeChecker, symbol: ts.Symbol, declaration: ts.Declaration): string {
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker))
  if (text === '' || isDetached(declaration)) return ''
  const tags = symbol
    .getJsDocTags(checker)
    .map(({ name, text }) => `@${name} ${ts.displayPartsToString(text)}`)
  return [text, ...tags].join('\n')
}

/** Whether an empty line follows the comment, which is then about the file. */
function isDetached(declaration: ts.Declaration): boolean {
  const comment = ts.getJSDocCommentsAndTags(declaration).filter(ts.isJSDoc).at(-1)
  if (!comment) return false
  return /^\s*\n\s*\n/.test(declaration.getSourceFile().text.slice(comment.end))
}

function repeatsName({ path, comment }: PublicName): boolean {
  const nameWords = new Set(wordsOf(path.replaceAll(/([a-z])([A-Z])/g, '$1 $2')))
  return wordsOf(comment).every((word) => nameWords.has(word) || emptyWords.has(word))
}

const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(/[a-z]+|\d+/g) ?? []

const emptyWords = new Set(['a', 'an', 'the', 'of', 'for', 'this', 'that', 'its', 'to', 'is'])

function isNumber(program: ts.Program, { declaration }: PublicName): boolean {
  const type = program.getTypeChecker().getTypeAtLocation(declaration)
  return (type.isUnion() ? type.types : [type]).some(({ flags }) => flags & ts.TypeFlags.Number)
}

/** Whether the body of a function throws an error that it creates, outside of nested functions. */
function throwsTyped(declaration: ts.Declaration): boolean {
  const isThrow = (node: ts.Node): boolean =>
    (ts.isThrowStatement(node) &&
      (ts.isNewExpression(node.expression) || ts.isCallExpression(node.expression))) ||
    (!ts.isFunctionLike(node) && ts.forEachChild(node, isThrow) === true)
  const node =
    ts.isVariableDeclaration(declaration) && declaration.initializer ? declaration.initializer : declaration
  return ts.isFunctionLike(node) && 'body' in node && node.body !== undefined && isThrow(node.body as ts.Node)
}

const placeOf = ({ path, declaration }: PublicName): string => {
  const { line } = declaration.getSourceFile().getLineAndCharacterOfPosition(declaration.getStart())
  return `${fileOf(declaration)}:${line + 1} ${path}`
}
