<?php
// Calls Till's API with nothing but PHP 8.0 or newer:
//
//   TILL_API_KEY=sk_test_… php till.php
declare(strict_types=1);

const ATTEMPTS_MAX = 4;
define('URL', getenv('TILL_URL') ?: 'http://localhost:4242');
define('KEY', getenv('TILL_API_KEY') ?: '');

/** A refusal. `error` is the API's: type, code, message, param, and decline_code of a decline. */
final class TillError extends Exception
{
    public function __construct(public int $status, public array $error, public ?string $requestId)
    {
        parent::__construct($error['message']);
    }
}

/** Sends a request. A POST is repeated under one idempotency key until it has an answer, and takes effect once. */
function till(string $method, string $path, array $body = [], ?string $idempotencyKey = null): array
{
    $headers = ['Authorization: Basic ' . base64_encode(KEY . ':')];
    $http = ['method' => $method, 'timeout' => 30, 'ignore_errors' => true];
    if ($method === 'POST') {
        $headers[] = 'Content-Type: application/json';
        $headers[] = 'Idempotency-Key: ' . ($idempotencyKey ?? bin2hex(random_bytes(16)));
        $http['content'] = json_encode($body ?: new stdClass());
    }
    $context = stream_context_create(['http' => $http + ['header' => $headers]]);
    for ($attempt = 1; ; $attempt++) {
        $stream = @fopen(URL . "/v1/$path", 'r', false, $context);
        $pause = 0.25 * 2 ** $attempt;
        if ($stream === false) {
            // The answer was lost. The request may have been carried out, and the repetition gets its answer.
            if ($attempt === ATTEMPTS_MAX) throw new RuntimeException('Till could not be reached at ' . URL);
        } else {
            $received = stream_get_meta_data($stream)['wrapper_data'];
            preg_match('/^HTTP\/\S+ (\d+)/', $received[0], $found);
            $status = (int) $found[1];
            $answer = json_decode(stream_get_contents($stream), true, 512, JSON_THROW_ON_ERROR);
            if ($status < 400) return $answer;
            // 409: another request under this key is being carried out. 429: too many requests. 503: out of service.
            $isTemporary = $answer['error']['code'] === 'idempotency_key_in_use' || in_array($status, [429, 503]);
            if (!$isTemporary || $attempt === ATTEMPTS_MAX) {
                throw new TillError($status, $answer['error'], headerOf($received, 'X-Request-Id'));
            }
            $pause = max($pause, (float) headerOf($received, 'Retry-After'));
        }
        usleep((int) ($pause * 1_000_000));
    }
}

function headerOf(array $headers, string $name): ?string
{
    foreach ($headers as $header) {
        if (stripos($header, "$name:") === 0) return trim(substr($header, strlen($name) + 1));
    }
    return null;
}

/** All objects of a list, page after page. */
function each(string $path, array $parameters): Generator
{
    do {
        $page = till('GET', "$path?" . http_build_query($parameters));
        foreach ($page['data'] as $object) yield $object;
        $parameters['starting_after'] = end($page['data'])['id'] ?? null;
    } while ($page['has_more']);
}

if (!str_starts_with(KEY, 'sk_test_')) {
    fwrite(STDERR, "TILL_API_KEY must hold a secret key of test mode, sk_test_…\n");
    exit(1);
}

$customer = till('POST', 'customers', ['email' => 'jenny@example.com', 'metadata' => ['user' => '42']]);
echo "{$customer['id']} is {$customer['email']}\n";

$sale = ['amount' => 2450, 'currency' => 'usd', 'customer' => $customer['id'], 'confirm' => true];
// The shop's own number of the order: after a crash, the same request cannot charge twice.
$order = "order 1 of {$customer['id']}";
$paid = till('POST', 'payment_intents', $sale + ['payment_method' => 'pm_card_visa'], $order);
echo "{$paid['id']} {$paid['status']}: {$paid['amount_received']} {$paid['currency']}\n";
$again = till('POST', 'payment_intents', $sale + ['payment_method' => 'pm_card_visa'], $order);
echo "{$again['id']} again, not charged twice\n";

try {
    till('POST', 'payment_intents', $sale + ['payment_method' => 'pm_card_insufficient_funds']);
} catch (TillError $refusal) {
    if ($refusal->status !== 402) throw $refusal;
    echo "{$refusal->error['decline_code']}: {$refusal->error['message']}\n";
}

foreach (each('payment_intents', ['customer' => $customer['id'], 'limit' => 1]) as $payment) {
    echo "- {$payment['id']} {$payment['status']}\n";
}
