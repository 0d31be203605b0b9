<?php
// Receives Till's webhooks with nothing but PHP 8.0 or newer, wherever your web server runs it, or on PHP's own:
//
//   TILL_WEBHOOK_SECRET=whsec_... php -S 127.0.0.1:3000 receiver.php
declare(strict_types=1);

const TOLERANCE_SECONDS = 300;
const BODY_BYTES_MAX = 1024 * 1024;

/** True if Till signed exactly these bytes, with one of our secrets, in the last five minutes. */
function isGenuine(string $body, string $header, array $secrets): bool
{
    $time = '';
    $signatures = [];
    foreach (explode(',', $header) as $entry) {
        [$name, $value] = explode('=', trim($entry), 2) + [1 => ''];
        if ($name === 't' && $time === '') {
            $time = $value;
        }
        if ($name === 'v1') {
            $signatures[] = $value;
        }
    }
    if (!preg_match('/\A[0-9]{1,12}\z/', $time) || abs(time() - (int) $time) > TOLERANCE_SECONDS) {
        return false;
    }
    foreach ($secrets as $secret) {
        $expected = hash_hmac('sha256', "v1=$time.$body", $secret);
        foreach ($signatures as $given) {
            if (hash_equals($expected, $given)) {
                return true;
            }
        }
    }
    return false;
}

// An event can arrive more than once. Programs with a database store the IDs in a unique column, in the transaction
// that processes the event. PHP keeps nothing between requests, so this program uses a file.
function handleOnce(array $event): void
{
    $handled = fopen(sys_get_temp_dir() . '/till-events-handled', 'c+');
    // The lock lasts until the file is closed, so concurrent deliveries of an event are processed once.
    flock($handled, LOCK_EX);
    while (($line = fgets($handled)) !== false) {
        if (rtrim($line) === $event['id']) {
            return;
        }
    }
    handle($event);
    fwrite($handled, "{$event['id']}\n");
}

function handle(array $event): void
{
    file_put_contents('php://stdout', "{$event['id']} {$event['type']}\n");
}

/** Returns the status of the response. */
function receive(): int
{
    // Two, separated by a comma, during the grace period of a rolled secret.
    $secrets = array_filter(explode(',', getenv('TILL_WEBHOOK_SECRET') ?: ''), fn ($secret) => $secret !== '');
    if ($secrets === []) {
        throw new Exception("TILL_WEBHOOK_SECRET must hold the endpoint's secret, whsec_...");
    }
    // The body is used unchanged. Parsed and serialized again, it would have other bytes than Till signed.
    $body = file_get_contents('php://input', length: BODY_BYTES_MAX + 1);
    if (strlen($body) > BODY_BYTES_MAX) {
        return 413;
    }
    if (!isGenuine($body, $_SERVER['HTTP_X_SIGNATURE'] ?? '', $secrets)) {
        return 400;
    }
    handleOnce(json_decode($body, associative: true, flags: JSON_THROW_ON_ERROR));
    return 200;
}

// PHP responds with 200 even after errors, so the status is 500 until all is done. After any status other than 2xx, Till
// sends the event again later.
http_response_code(500);
try {
    http_response_code(receive());
} catch (Throwable $error) {
    error_log((string) $error);
}
