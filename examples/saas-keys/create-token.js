/** Prints a token as the login of the site would create it: JWT_SECRET=… node create-token.js CUSTOMER [PLAN] */
import { SignJWT } from 'jose'

const [customer = 'acme', plan = 'free'] = process.argv.slice(2)

console.log(
  await new SignJWT({ customer, plan })
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuer('my-site')
    .setSubject('ada')
    .setExpirationTime('1h')
    .sign(new TextEncoder().encode(process.env.JWT_SECRET)),
)
