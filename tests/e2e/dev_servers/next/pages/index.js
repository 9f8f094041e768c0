export default function Page() {
  return <p>the first word</p>;
}
